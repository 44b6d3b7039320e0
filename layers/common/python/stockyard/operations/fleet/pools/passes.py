"""Passes over clusters: the one that an event names, or all that have a record which is due. Each cluster's pass is an
invocation of its own, so one that lasts or dies delays no other cluster (decision 375)."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import ClassVar

from stockyard import side_by_side
from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.pools.records import Pool
from stockyard.domain.values import times
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import Conflict, rather_retryable
from stockyard.garbage import without_garbage_collection
from stockyard.operations.services import Services
from stockyard.ports import Registry, Replace

MOST_DUE = 1000
"""Records that are read together; the longest due come first."""
NEXT_SECONDS = 25
"""When a cluster is due again whose pass begins now: the next minute's schedule looks at it when the pass dies. A pass
that comes to its end says itself when the next one is due. It is sooner than a report of pods asks for (``watch``), so
that a report leaves the cluster to the pass that goes on, and does not make it begin anew."""
AHEAD_SECONDS = 2
"""The schedule also begins what is due within so many seconds. It comes each minute and needs a moment to reach a
cluster: so none begins later than a minute after it is due. A pass that comes too early for what it was due for says
itself when it is due again, and finds it in the next minute's run, which is when it would have begun anyway."""
PASS_SECONDS = 40.0
"""For how long one run of the schedule begins passes: less than its function has."""
HandOut = Callable[[str, str, str], None]
"""Begins a pass as an invocation of its own: of a tenant, a cluster's id, and the ``due_at`` that its records have
while the pass goes on. It does not wait for the pass."""
Outcome = Mapping[str, int] | Exception | None
"""What a pass counts that was begun, why one could not be begun, or None where the time was over."""


@dataclass(frozen=True, slots=True)
class Passes(ABC):
    """The ports of passes, which work for all tenants. Without ``hand_out`` the schedule's passes run in its own
    process, one after the other, as worlds without functions want it."""

    registry: Registry
    services_of: Callable[[str], Services]
    hand_out: HandOut | None = None
    seconds: Callable[[], float] = time.monotonic

    kind: ClassVar[type[Pool] | type[ClusterDisruption]]
    """The record that says when a cluster is due."""

    @abstractmethod
    def look(self, services: Services, cluster_id: str, lease: str | None, /) -> Mapping[str, int]:
        """One look at a cluster: what it did, as counts. ``lease`` is the ``due_at`` that records have only because the
        schedule has begun this look."""

    def woken(self, tenant: str, cluster_id: str, lease: str | None = None) -> Mapping[str, int]:
        """Look at one cluster; see ``look``."""
        with without_garbage_collection():
            return {"clusters": 1, **self.look(self.services_of(tenant), cluster_id, lease)}

    def due(self, now: datetime) -> Mapping[str, int]:
        """Begin a pass over every cluster with a record that is due, or is so in a moment (``AHEAD_SECONDS``), side by
        side where others do them. One cluster's failure, a fault of ours too, keeps none of the others; at the end the
        first is raised, rather one worth a retry."""
        total: Counter[str] = Counter(clusters=0)
        ends_at = self.seconds() + PASS_SECONDS
        failure: Exception | None = None
        for clusters in self._due_clusters(now):
            begin = partial(self._attempt, now, ends_at)
            outcomes = self._each([partial(begin, *key, records) for key, records in clusters.items()])
            for outcome in outcomes:
                if isinstance(outcome, Exception):
                    total["clusters"] += 1
                    failure = rather_retryable(failure, outcome)
                elif outcome is not None:
                    total.update(outcome)
            if None in outcomes:
                break
        if failure is not None:
            raise failure
        return total

    def _each(self, begins: Sequence[Callable[[], Outcome]]) -> Sequence[Outcome]:
        """Outcomes of the beginnings, which mostly wait for the table and for Lambda."""
        if self.hand_out is None:
            return [begin() for begin in begins]
        # The first one alone: it makes the clients that the others share.
        return [begins[0](), *side_by_side.results(begins[1:])]

    def _attempt(
        self, now: datetime, ends_at: float, tenant: str, cluster_id: str, records: Sequence[Pool | ClusterDisruption]
    ) -> Outcome:
        """The counts of a pass that is begun, or why it could not be; None where the time is over."""
        if self.seconds() >= ends_at:
            return None
        try:
            return self._begin(tenant, cluster_id, records, now)
        except Exception as error:  # one tenant's records, or a fault of ours with them, keep none of the others
            return error

    def _due_clusters(self, now: datetime) -> Iterator[Mapping[tuple[str, str], Sequence[Pool | ClusterDisruption]]]:
        """The clusters of each reading with their records that are due, the longest due first. What was begun is not
        due any more, so further readings show others."""
        clusters_begun: set[tuple[str, str]] = set()
        while True:
            clusters: dict[tuple[str, str], list[Pool | ClusterDisruption]] = {}
            entries = self.registry.due(self.kind, now + timedelta(seconds=AHEAD_SECONDS), limit=MOST_DUE)
            for tenant, record in entries:
                clusters.setdefault((tenant, record.id.partition("/")[0]), []).append(record)
            new = {key: records for key, records in clusters.items() if key not in clusters_begun}
            if new:
                yield new
            clusters_begun |= new.keys()
            if len(entries) < MOST_DUE or not new:
                return

    def _begin(
        self, tenant: str, cluster_id: str, records: Sequence[Pool | ClusterDisruption], now: datetime
    ) -> Mapping[str, int]:
        """Begin the pass over a cluster. That it is due later is written first: one that dies does not stay first."""
        lease, store = times.to_text(now + timedelta(seconds=NEXT_SECONDS)), self.services_of(tenant).store
        for record in records:
            with suppress(Conflict):  # somebody works on it: the pass reads what they have written
                store.commit(Replace(replace(record, due_at=lease, version=record.version + 1)))
        if self.hand_out is None:
            return self.woken(tenant, cluster_id, lease)
        self.hand_out(tenant, cluster_id, lease)
        return {"clusters": 1}
