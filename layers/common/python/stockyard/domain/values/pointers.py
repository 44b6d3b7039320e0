"""JSON pointers (RFC 6901)."""

from __future__ import annotations


def pointer(*parts: str | int) -> str:
    """The pointer of a place in a document."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
