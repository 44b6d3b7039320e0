"""Which clusters the pass of each minute looks at, and what one that cannot be looked at does to the others."""

from __future__ import annotations

from datetime import timedelta

import pytest

from stockyard.domain.values import times
from stockyard.errors import StoreUnavailable
from stockyard.operations.fleet.pools import autoscaler
from stockyard.operations.fleet.pools.autoscaler import Autoscaler
from stockyard.operations.fleet.pools.reconcile import Report
from stockyard.operations.services import Services
from tests.unit.operations.fleet.pools.conftest import Yard


def due(yard: Yard) -> None:
    later = times.from_text(yard.nodes.services.now()) + timedelta(hours=1)
    Autoscaler(yard.nodes.registry, lambda _: yard.nodes.services).due(later)


def clusters(yard: Yard, count: int) -> list[str]:
    """The yard's cluster and more of them, each with a pool."""
    first = yard.cluster
    yard.pool()
    further = []
    for number in range(1, count):
        yard.cluster = yard.world.create(f"other-{number}")
        yard.cluster = yard.put(status="ready")
        yard.pool()
        further.append(yard.cluster.id)
    yard.cluster = first
    return [first.id, *further]


@pytest.mark.parametrize("failure", [KeyError("a fault of ours"), StoreUnavailable("throttled")])
def test_a_cluster_that_cannot_be_looked_at_keeps_none_of_the_others(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    first, *further = clusters(yard, 3)
    visited = []

    def look(_: Services, cluster_id: str) -> Report:
        visited.append(cluster_id)
        if cluster_id == first:
            raise failure
        return Report()

    monkeypatch.setattr(autoscaler, "reconcile", look)
    with pytest.raises(type(failure)):
        due(yard)
    assert sorted(visited) == sorted([first, *further])


def test_of_several_failures_the_retryable_decides(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that is worth a retry is tried again, whatever else was wrong."""
    failures = dict(zip(clusters(yard, 2), [KeyError("a fault of ours"), StoreUnavailable("throttled")], strict=True))

    def look(_: Services, cluster_id: str) -> Report:
        raise failures[cluster_id]

    monkeypatch.setattr(autoscaler, "reconcile", look)
    with pytest.raises(StoreUnavailable):
        due(yard)


def test_pools_of_a_cluster_that_is_deleted_are_left_to_its_deletion(yard: Yard) -> None:
    """It may be blocked for weeks: its pools must not fill the pass of each minute."""
    first, other = clusters(yard, 2)
    yard.put(status="deleting")
    due(yard)
    later = times.from_text(yard.nodes.services.now()) + timedelta(hours=1)
    waiting = {pool.cluster_id for _, pool in yard.nodes.registry.due(autoscaler.Pool, later, limit=10)}
    assert (first in waiting, other in waiting) == (False, True)
