"""The error of a file or an option that cannot be used."""

from __future__ import annotations

from stockyard_client.errors import StockyardClientError


class BadInput(StockyardClientError):
    """A file or an option that cannot be used."""
