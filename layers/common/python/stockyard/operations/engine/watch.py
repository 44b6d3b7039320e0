"""Have the schedule look at the nodes of a cluster: something has changed that may let nodes go."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.pools.replacements import failed_replacements
from stockyard.domain.records import NodeClaim
from stockyard.domain.values import times
from stockyard.errors import Conflict
from stockyard.operations.engine.advance import TRIES
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace


def watch(services: Services, cluster_id: str, seconds: int = 0, *, begin: bool = False) -> None:
    """Look at the cluster in so many seconds at the latest. ``begin``: also when nobody has looked at it before.

    Where the cluster is due already, a look may be going on that has not seen what has changed, and that would say when
    the next one is. Unless there is time (``seconds``), the record is written again, so that such a look begins anew.
    Others that write the record at the same time are waited for a few times. Nothing is raised then: what the caller
    has changed is written already, and a record that is written all the time is looked at.
    """
    for _ in range(TRIES):
        with suppress(Conflict):
            _write(services, cluster_id, seconds, begin)
            return


def note_failures(services: Services, cluster_id: str, claims: Sequence[NodeClaim]) -> None:
    """Tell a disruption that waits for new nodes which claims of ``claims`` have failed, and have its cluster looked at
    now. Their pools may give them back afterwards: the reason is not lost."""
    for _ in range(TRIES):
        record = services.store.get(ClusterDisruption, cluster_id)
        failures = failed_replacements(record, claims) if record is not None else {}
        if record is None or failures.keys() <= record.failures.keys():
            return
        now, known_failures = services.now(), {**record.failures, **failures}
        due_at, version = min(now, record.due_at or now), record.version + 1
        with suppress(Conflict):
            changed = replace(record, failures=known_failures, due_at=due_at, updated_at=now, version=version)
            services.store.commit(Replace(changed))
            return


def _write(services: Services, cluster_id: str, seconds: int, begin: bool) -> None:
    now = services.now()
    due_at = times.to_text(services.clock.now() + timedelta(seconds=seconds))
    record = services.store.get(ClusterDisruption, cluster_id)
    if record is None and begin:
        services.store.commit(Create(ClusterDisruption(cluster_id, now, now, due_at)))
    elif record is not None and (record.due_at is None or record.due_at > due_at or not seconds):
        soonest = due_at if record.due_at is None else min(due_at, record.due_at)
        services.store.commit(Replace(replace(record, due_at=soonest, updated_at=now, version=record.version + 1)))
