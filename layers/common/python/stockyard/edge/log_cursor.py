"""Cursors that follow the log of an operation: for each run the number of its last line that was told."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stockyard.errors import InvalidInput

_START = "start"
"""The cursor of somebody who was told nothing yet."""
_PART = re.compile(r"(?P<name>[a-z][a-z0-9-]{0,31})\.(?P<attempt>\d{1,4})\.(?P<line>\d{1,7})")
_MOST_RUNS = 50


def to_cursor(position: Mapping[tuple[str, int], int]) -> str:
    """The cursor behind these lines, by name and attempt of the run."""
    parts = [f"{name}.{attempt}.{line}" for (name, attempt), line in sorted(position.items())]
    return "~".join(parts) or _START


def read_position(cursor: str) -> dict[tuple[str, int], int]:
    """The lines that the cursor stands behind. ``InvalidInput`` for a text that is no cursor of a log."""
    if cursor == _START:
        return {}
    parts = [_PART.fullmatch(part) for part in cursor.split("~", _MOST_RUNS)]
    position = {(part["name"], int(part["attempt"])): int(part["line"]) for part in parts if part is not None}
    if len(position) != len(parts) or len(parts) > _MOST_RUNS:
        raise InvalidInput.of_parameter("after", "must be the cursor of an answer of this log.")
    return position
