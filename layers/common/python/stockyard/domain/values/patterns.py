"""Regular expressions that are compiled at their first use: a first request needs few that its modules have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

__all__ = ["pattern"]

if TYPE_CHECKING:
    from re import compile as pattern
else:

    def pattern(text: str, flags: int = 0) -> _Waiting:
        """The same as ``re.compile``, later. What is wrong with the text is raised at its first use."""
        return _Waiting(text, flags)


class _Waiting:
    """A pattern whose methods are those of the compiled one, from the first time that each is called."""

    def __init__(self, text: str, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        # re keeps what it has compiled, so two methods of one pattern compile it once.
        value = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, value)
        return value
