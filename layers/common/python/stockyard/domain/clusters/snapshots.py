"""Snapshots of etcd outside of a cluster's machines: when one is due, when one is overdue, which ones stay.

Time is cut into slots of the interval, counted from midnight UTC. A slot has one snapshot, whose id is the slot's
beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.patterns import pattern
from stockyard.domain.values.times import to_text

SETTING = "etcd_backup"
"""The cluster's setting that asks for them."""
KEEP, MOST_KEEP = 28, 400
"""Snapshots that stay unless somebody says how many, and at most."""
ID = pattern(r"\d{8}T\d{6}Z")
_FORM = "%Y%m%dT%H%M%SZ"
GRACE = timedelta(hours=1)
"""How long after a slot has begun its snapshot may still be on its way."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Interval between snapshots, and how many of them stay."""

    interval_hours: int
    keep: int

    def slot(self, now: datetime) -> str:
        """The id of the snapshot that belongs to this moment."""
        midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        hours = now.astimezone(UTC).hour // self.interval_hours * self.interval_hours
        return (midnight + timedelta(hours=hours)).strftime(_FORM)

    def overdue_since(self, last: str, since: datetime, now: datetime) -> str | None:
        """Since when a snapshot is overdue; None while none is. ``last`` is the id of the newest, empty for none, and
        ``since`` that moment there should be any."""
        newest = max(moment(last), since) if last else since
        due = newest + timedelta(hours=self.interval_hours) + GRACE
        return to_text(due) if now > due else None

    def surplus(self, ids: Iterable[str]) -> list[str]:
        """Snapshots that are to go: all but the newest."""
        return sorted(ids)[: -self.keep]


def schedule_of(settings: Mapping[str, Any]) -> Schedule | None:
    """The schedule of a cluster with these settings; None where nobody has asked for snapshots."""
    backup = settings.get(SETTING)
    return Schedule(int(backup["interval_hours"]), int(backup["keep"])) if backup else None


def moment(snapshot_id: str) -> datetime:
    """Moment when the snapshot's slot began."""
    return datetime.strptime(snapshot_id, _FORM).replace(tzinfo=UTC)
