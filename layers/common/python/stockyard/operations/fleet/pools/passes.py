"""Passes over clusters: the one that an event names, or all that have a record which is due. Each works by itself."""

from __future__ import annotations

import gc
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.pools.records import Pool
from stockyard.operations.services import Services
from stockyard.ports import Registry

MOST_DUE = 1000
"""Records that one pass of the schedule reads; the longest due come first."""


@dataclass(frozen=True, slots=True)
class Passes(ABC):
    """The ports of passes, which work for all tenants."""

    registry: Registry
    services_of: Callable[[str], Services]
    seconds: Callable[[], float] = time.monotonic

    kind: ClassVar[type[Pool] | type[ClusterDisruption]]
    """The record that says when a cluster is due."""
    pass_seconds: ClassVar[float]
    """How long a pass begins with further clusters: less than its function has."""

    @abstractmethod
    def look(self, services: Services, cluster_id: str) -> Mapping[str, int]:
        """One look at a cluster: what it did, as counts."""

    def woken(self, tenant: str, cluster_id: str) -> Mapping[str, int]:
        """Look at one cluster."""
        return {"clusters": 1, **self._uncollected(tenant, cluster_id)}

    def due(self, now: datetime) -> Mapping[str, int]:
        """Look at every cluster that has a record which is due. One cluster's failure, a fault of ours too, keeps none
        of the others; when all were looked at the first is raised, rather one worth a retry."""
        entries = self.registry.due(self.kind, now, limit=MOST_DUE)
        clusters = dict.fromkeys((tenant, record.id.partition("/")[0]) for tenant, record in entries)
        total: Counter[str] = Counter(clusters=0)
        ends_at = self.seconds() + self.pass_seconds
        failure: Exception | None = None
        for tenant, cluster_id in clusters:
            if self.seconds() >= ends_at:
                break
            total["clusters"] += 1
            try:
                total.update(self._uncollected(tenant, cluster_id))
            except Exception as error:  # one tenant's records, or a fault of ours with them, keep none of the others
                if failure is None or getattr(error, "retryable", False) > getattr(failure, "retryable", False):
                    failure = error
        if failure is not None:
            raise failure
        return total

    def _uncollected(self, tenant: str, cluster_id: str) -> Mapping[str, int]:
        with _without_garbage_collection():
            return self.look(self.services_of(tenant), cluster_id)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Without a search for garbage: a pass over a large cluster makes a million objects that live until its end, and to
    look at them again and again takes a third of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
