"""Which clusters a pass over pools looks at: the one that an event names, or all whose pools are due."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from stockyard.domain.pool_records import Pool
from stockyard.operations.pools.reconcile import Report, reconcile
from stockyard.operations.services import Services
from stockyard.ports import Registry

MOST_DUE = 1000
"""Pools that one pass of the schedule reads; the longest due come first."""
PASS_SECONDS = 40.0
"""How long a pass begins with further clusters: the function has 60 seconds."""
TRIES = 3
"""How often a pass looks at a cluster again whose pools somebody else changed meanwhile."""


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """The ports of the passes, which work for all tenants, each by itself."""

    registry: Registry
    services_of: Callable[[str], Services]
    seconds: Callable[[], float] = time.monotonic

    def woken(self, tenant: str, cluster_id: str) -> Mapping[str, int]:
        """Look at the pools of one cluster."""
        total = Report()
        self._look(tenant, cluster_id, total)
        return _counts(total, 1)

    def due(self, now: datetime) -> Mapping[str, int]:
        """Look at every cluster that has a pool which is due. One cluster's failure, a fault of ours too, keeps none of
        the others; when all were looked at the first is raised, rather one worth a retry."""
        clusters = dict.fromkeys(
            (tenant, pool.cluster_id) for tenant, pool in self.registry.due(Pool, now, limit=MOST_DUE)
        )
        total, ends_at, looked_at = Report(), self.seconds() + PASS_SECONDS, 0
        failure: Exception | None = None
        for tenant, cluster_id in clusters:
            if self.seconds() >= ends_at:
                break
            looked_at += 1
            try:
                self._look(tenant, cluster_id, total)
            except Exception as error:  # one tenant's records, or a fault of ours with them, keep none of the others
                if failure is None or getattr(error, "retryable", False) > getattr(failure, "retryable", False):
                    failure = error
        if failure is not None:
            raise failure
        return _counts(total, looked_at)

    def _look(self, tenant: str, cluster_id: str, total: Report) -> None:
        services = self.services_of(tenant)
        for _ in range(TRIES):
            with _uncollected():
                report = reconcile(services, cluster_id)
            total.created += report.created
            total.given_back += report.given_back
            total.lost += report.lost
            if not report.lost:
                return


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without a search for garbage: a pass over a large cluster makes a million objects that live until its end, and to
    look at them again and again takes a third of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _counts(report: Report, clusters: int) -> Mapping[str, int]:
    return {
        "clusters": clusters,
        "claims_created": report.created,
        "claims_given_back": report.given_back,
        "lost": report.lost,
    }
