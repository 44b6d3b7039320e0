"""Pauses after rounds that failed."""

from __future__ import annotations

LONGEST = 3600.0
"""The longest pause that an answer may ask for, in seconds."""
BACK_OFF, BACK_OFF_MOST = 2.0, 300.0
"""Seconds to wait after the first failed round, and the longest wait."""


def back_off(failures: int, jitter: float, at_least: float = 0.0) -> float:
    """Seconds to wait after so many failed rounds in a row. ``jitter`` is a number from 0 to 1."""
    longest = min(BACK_OFF * 2.0 ** min(failures - 1, 16), BACK_OFF_MOST)
    return max(longest * (0.5 + 0.5 * jitter), min(at_least, LONGEST))
