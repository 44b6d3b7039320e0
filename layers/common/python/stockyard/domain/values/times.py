"""Times as the API shows them: RFC 3339, UTC, milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

TICK = timedelta(milliseconds=1)
"""The resolution of times."""
_WRITTEN = len("2026-01-31T12:00:00.000Z")


def to_text(moment: datetime) -> str:
    """``2026-01-31T12:00:00.000Z``. Text of this form sorts as time does."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")[: _WRITTEN - 1] + "Z"


def from_text(text: str) -> datetime:
    """The moment that :func:`to_text` wrote. Raises ``ValueError`` on anything else."""
    # What `to_text` writes is read by C; other fractions of a second, and what is no time at all, by pattern.
    if len(text) == _WRITTEN and (text[4], text[7], text[10], text[19], text[23]) == ("-", "-", "T", ".", "Z"):
        return datetime.fromisoformat(text)
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def epoch(moment: datetime) -> int:
    """Whole seconds since 1970, as DynamoDB's TTL wants it."""
    return int(moment.timestamp())
