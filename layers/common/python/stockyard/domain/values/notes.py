"""Remarks beside a plan or an answer: warnings, which somebody has to mind, and notes, which only tell."""

from __future__ import annotations

from typing import Any


class Note(str):
    """A sentence that tells what is so, and asks nobody to do or check anything."""

    __slots__ = ()


def remark(pointer: str, detail: str) -> dict[str, Any]:
    """The sentence as a ``Remark`` document: of a :class:`Note` with the field ``note``."""
    return {"pointer": pointer, "detail": str(detail), **({"note": True} if isinstance(detail, Note) else {})}
