"""Durations as Go and Kubernetes write them: ``30s``, ``5m``, ``1h30m``, and ``Never``."""

from __future__ import annotations

import re

NEVER = "Never"
LARGEST_SECONDS = (2**63 - 1) // 10**9
"""The longest duration that Go holds, some 292 years."""
_UNITS = {"s": 1, "m": 60, "h": 3600}
_PART = re.compile(r"([0-9]{1,9})([smh])")


def seconds(text: str) -> int | None:
    """The duration in seconds; None for ``Never`` and for an empty text. Raises ``ValueError`` for any other text."""
    if text in ("", NEVER):
        return None
    total, end = 0, 0
    for part in _PART.finditer(text):
        if part.start() != end:
            break
        total, end = total + int(part[1]) * _UNITS[part[2]], part.end()
    if end != len(text):
        raise ValueError("must be a duration such as 30s, 5m or 1h30m")
    if total > LARGEST_SECONDS:
        raise ValueError("must be at most 292 years")
    return total
