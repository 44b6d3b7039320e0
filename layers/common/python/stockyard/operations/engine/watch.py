"""Have the schedule look at the nodes of a cluster: something has changed that may let nodes go."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from stockyard.domain import times
from stockyard.domain.disruption_records import ClusterDisruption
from stockyard.errors import Conflict
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace


def watch(services: Services, cluster_id: str, seconds: int = 0, *, begin: bool = False) -> None:
    """Look at the cluster in so many seconds at the latest. ``begin``: also when nobody has looked at it before.

    When somebody else writes the record at the same time, that has looked, or will soon.
    """
    now = services.now()
    due_at = times.to_text(services.clock.now() + timedelta(seconds=seconds))
    record = services.store.get(ClusterDisruption, cluster_id)
    with suppress(Conflict):
        if record is None and begin:
            services.store.commit(Create(ClusterDisruption(cluster_id, now, now, due_at)))
        elif record is not None and (record.due_at is None or record.due_at > due_at):
            sooner = replace(record, due_at=due_at, updated_at=now, version=record.version + 1)
            services.store.commit(Replace(sooner))
