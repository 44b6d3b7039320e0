"""Moments as people read them: how long ago something was."""

from __future__ import annotations

from datetime import UTC, datetime

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def seconds_since(moment: str | None, now: float) -> float | None:
    """Seconds from ``moment``, as the API writes it, to ``now`` (seconds since 1970); None where it is no moment."""
    try:
        then = datetime.fromisoformat((moment or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    return max(0.0, now - (then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp())


def age(moment: str | None, now: float) -> str | None:
    """Time since ``moment``, as kubectl writes it: ``45s``, ``3m20s``, ``5h``, ``2d4h``, ``40d``."""
    seconds = seconds_since(moment, now)
    if seconds is None:
        return None
    whole = int(seconds)
    for limit, unit, letter, below, below_letter in (
        (2 * _MINUTE, 1, "s", 0, ""),
        (10 * _MINUTE, _MINUTE, "m", 1, "s"),
        (3 * _HOUR, _MINUTE, "m", 0, ""),
        (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
        (2 * _DAY, _HOUR, "h", 0, ""),
        (8 * _DAY, _DAY, "d", _HOUR, "h"),
    ):
        if whole < limit:
            remaining = whole % unit // below if below else 0
            return f"{whole // unit}{letter}" + (f"{remaining}{below_letter}" if remaining else "")
    return f"{whole // _DAY}d"
