"""Names that were probably meant by names that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_CLOSE = 0.75
"""How alike two names must be, as ``difflib`` counts; capitals, dashes and underscores do not count."""


def closest(name: str, names: Iterable[str]) -> str:
    """The one of ``names`` that ``name`` was probably meant to be; empty when none is much like it."""
    plain = {_plain(each): each for each in names}
    return next((plain[match] for match in get_close_matches(_plain(name), plain, n=1, cutoff=_CLOSE)), "")


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
