"""The region of an account or a cluster that names none."""

from __future__ import annotations

DEFAULT_REGION = "us-east-1"
"""Where an account or a cluster is that names no region."""
