"""The command line ``stockyard``."""

from __future__ import annotations

from stockyard_client.cli.app import main

__all__ = ["main"]
