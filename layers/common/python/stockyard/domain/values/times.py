"""Times as the API shows them: RFC 3339, UTC, milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

TICK = timedelta(milliseconds=1)
"""The resolution of times."""


def to_text(moment: datetime) -> str:
    """``2026-01-31T12:00:00.000Z``. Text of this form sorts as time does."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def from_text(text: str) -> datetime:
    """The moment that :func:`to_text` wrote. Raises ``ValueError`` on anything else."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def epoch(moment: datetime) -> int:
    """Whole seconds since 1970, as DynamoDB's TTL wants it."""
    return int(moment.timestamp())
