"""What the sweep may remove: pure rules of law 5."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from stockyard.domain import times


def too_many(orphans: int, tagged: int) -> bool:
    """Whether removing ``orphans`` of ``tagged`` things would be suspicious: more than max(5, 5 %)."""
    return orphans > max(5, tagged * 5 // 100)


def is_orphan(resource_id: str, living: Collection[str]) -> bool:
    """Whether what carries our four tags belongs to no living record."""
    return resource_id not in living


def old_enough(created_at: str | None, first_seen: str | None, now: datetime, grace: timedelta) -> bool:
    """Older than the grace period and seen before. Without a creation time the first sighting counts."""
    if first_seen is None:
        return False
    born = times.from_text(created_at) if created_at else times.from_text(first_seen)
    return now - born > grace


def stale_sightings(sightings: Mapping[str, str], present: Collection[str]) -> list[str]:
    """Sightings of things that are no longer there."""
    return [key for key in sightings if key not in present]
