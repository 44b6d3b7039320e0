"""Audit records: one per changing call and per secret that is read, with who, what, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stockyard.domain.values import ids

MAX_NAMES = 40
"""How many names of a body's fields a record keeps. Its values are never kept."""


def subject_of(path: str, parameters: Iterable[str], body: Any) -> str:
    """Subject of a call: the identifier in its answer, else ``collection/name`` of the path."""
    parts = path.strip("/").split("/")
    collection = parts[1].rstrip("s") if len(parts) > 1 else ""
    identifier = body.get("id") if isinstance(body, dict) else None
    if identifier is None:
        identifier = next(iter(parameters), None)
    if identifier is None:
        return collection
    return str(identifier) if ids.is_id(str(identifier)) else f"{collection}/{identifier}"
