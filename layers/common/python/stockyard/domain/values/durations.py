"""Durations as Go and Kubernetes write them: ``30s``, ``5m``, ``1h30m``, and ``Never``."""

from __future__ import annotations

from stockyard.domain.values.patterns import pattern

NEVER = "Never"
LARGEST_SECONDS = (2**63 - 1) // 10**9
"""The longest duration that Go holds, some 292 years."""
_UNITS = {"s": 1, "m": 60, "h": 3600}
_PART = pattern(r"([0-9]{1,9})([smh])")
_GO_UNITS = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, **_UNITS}
_GO_PART = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h)"
_GO = pattern(rf"([+-]?)(0|(?:{_GO_PART})+)")
_GO_PARTS = pattern(r"([0-9.]+)([a-z\u00b5\u03bc]+)")
_LONGEST_TEXT = 128


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


def go_seconds(text: str) -> float | None:
    """Any duration that Go reads, in seconds, such as ``1.5h``, ``-5m`` or ``300ms``; None for any other text."""
    match = _GO.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if match is None:
        return None
    total = sum(float(number) * _GO_UNITS[unit] for number, unit in _GO_PARTS.findall(match[2]))
    if total > LARGEST_SECONDS:
        return None
    return -total if match[1] == "-" else total
