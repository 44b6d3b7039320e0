"""Clusters that the pass of each minute looks at, and the effect on others of one that cannot be looked at."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

import pytest

from stockyard import side_by_side
from stockyard.domain.pools.records import Pool
from stockyard.domain.values import times
from stockyard.errors import StoreUnavailable
from stockyard.lifecycle.pools.pool import SETTLED_SECONDS, later_than
from stockyard.operations.fleet.pools import passes as passes_module
from stockyard.operations.fleet.pools import reconcile
from stockyard.operations.fleet.pools.autoscaler import Autoscaler
from stockyard.operations.fleet.pools.reconcile import Report
from stockyard.operations.services import Services
from tests.unit.operations.fleet.pools.conftest import Yard


def soon(yard: Yard) -> datetime:
    return times.from_text(yard.nodes.services.now()) + timedelta(seconds=1)


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

    def look(_: Services, cluster_id: str, lease: str | None) -> Report:
        visited.append(cluster_id)
        if cluster_id == first:
            raise failure
        return Report()

    monkeypatch.setattr(reconcile, "reconcile", look)
    with pytest.raises(type(failure)):
        due(yard)
    assert sorted(visited) == sorted([first, *further])


def test_of_several_failures_the_retryable_decides(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that is worth a retry is tried again, whatever else was wrong."""
    failures = dict(zip(clusters(yard, 2), [KeyError("a fault of ours"), StoreUnavailable("throttled")], strict=True))

    def look(_: Services, cluster_id: str, lease: str | None) -> Report:
        raise failures[cluster_id]

    monkeypatch.setattr(reconcile, "reconcile", look)
    with pytest.raises(StoreUnavailable):
        due(yard)


def test_pools_of_a_cluster_that_is_deleted_are_left_to_its_deletion(yard: Yard) -> None:
    """A deletion may be blocked for weeks: its pools must not fill the pass of each minute."""
    first, other = clusters(yard, 2)
    yard.put(status="deleting")
    due(yard)
    later = times.from_text(yard.nodes.services.now()) + timedelta(hours=1)
    waiting = {pool.cluster_id for _, pool in yard.nodes.registry.due(Pool, later, limit=10)}
    assert (first in waiting, other in waiting) == (False, True)


def test_the_schedule_begins_each_clusters_pass_by_itself(yard: Yard) -> None:
    """A pass that dies does not stay first: its cluster is due a minute later, like everybody's."""
    ids = clusters(yard, 3)
    handed_out: list[tuple[str, str, str]] = []
    passes = Autoscaler(yard.nodes.registry, lambda _: yard.nodes.services, lambda *event: handed_out.append(event))
    now = soon(yard)
    assert passes.due(now) == {"clusters": 3}
    assert sorted(cluster_id for _, cluster_id, _ in handed_out) == sorted(ids)
    # None of these passes has come to its end: all clusters are due again, once, at the next run of the schedule.
    assert passes.due(now + timedelta(seconds=20)) == {"clusters": 0}
    assert passes.due(now + timedelta(seconds=60)) == {"clusters": 3}


def test_the_schedule_begins_what_is_due_in_a_moment(yard: Yard) -> None:
    """Else what is due right behind a run begins later than a minute after that: the next run has to reach it first."""
    (cluster_id,) = clusters(yard, 1)
    (due_at,) = {pool.due_at for _, pool in yard.nodes.registry.due(Pool, soon(yard), limit=10)}
    cluster_ids: list[str] = []
    passes = Autoscaler(
        yard.nodes.registry, lambda _: yard.nodes.services, lambda _, cluster_id, __: cluster_ids.append(cluster_id)
    )
    moment = times.from_text(str(due_at)) - timedelta(seconds=passes_module.AHEAD_SECONDS)
    assert passes.due(moment) == {"clusters": 0}
    assert passes.due(moment + timedelta(seconds=1)) == {"clusters": 1}
    assert cluster_ids == [cluster_id]


def test_passes_are_begun_side_by_side(yard: Yard) -> None:
    """Behind the first one, which makes the clients that the others share."""
    count = side_by_side.LANES + 1
    clusters(yard, count)
    all_lanes = threading.Barrier(side_by_side.LANES, timeout=30)
    cluster_ids: list[str] = []

    def hand_out(_: str, cluster_id: str, __: str) -> None:
        cluster_ids.append(cluster_id)
        if len(cluster_ids) > 1:
            all_lanes.wait()

    passes = Autoscaler(yard.nodes.registry, lambda _: yard.nodes.services, hand_out)
    assert passes.due(soon(yard)) == {"clusters": count}
    assert len(set(cluster_ids)) == count


def test_a_cluster_that_cannot_be_begun_keeps_none_of_the_others(yard: Yard) -> None:
    first, *further = clusters(yard, 3)
    cluster_ids = []

    def hand_out(_: str, cluster_id: str, lease: str) -> None:
        if cluster_id == first:
            raise StoreUnavailable("throttled")
        cluster_ids.append(cluster_id)

    with pytest.raises(StoreUnavailable):
        Autoscaler(yard.nodes.registry, lambda _: yard.nodes.services, hand_out).due(soon(yard))
    assert sorted(cluster_ids) == sorted(further)


def test_a_pass_that_ends_leaves_no_trace_of_its_lease(yard: Yard) -> None:
    """A pool that lacks nothing rests for half an hour, and is not looked at each minute since a pass was begun."""
    yard.pool(quantity=0)
    leases: list[str] = []
    now = soon(yard)
    passes = Autoscaler(
        yard.nodes.registry, lambda _: yard.nodes.services, lambda _, cluster_id, lease: leases.append(lease)
    )
    passes.due(now)
    assert yard.now().due_at == leases[0]
    passes.woken("acme", yard.cluster.id, leases[0])
    assert yard.now().due_at == later_than(yard.nodes.services.now(), SETTLED_SECONDS)


def test_what_is_due_beyond_one_reading_is_begun_too(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes_module, "MOST_DUE", 2)
    clusters(yard, 5)
    cluster_ids: list[str] = []
    Autoscaler(
        yard.nodes.registry, lambda _: yard.nodes.services, lambda _, cluster_id, __: cluster_ids.append(cluster_id)
    ).due(soon(yard))
    assert len(cluster_ids) == len(set(cluster_ids)) == 5


def test_the_schedule_begins_no_pass_when_its_time_is_over(yard: Yard) -> None:
    clusters(yard, 3)
    moments = iter([0.0, 1.0, passes_module.PASS_SECONDS, passes_module.PASS_SECONDS + 1])
    cluster_ids: list[str] = []
    Autoscaler(
        yard.nodes.registry,
        lambda _: yard.nodes.services,
        lambda _, cluster_id, __: cluster_ids.append(cluster_id),
        lambda: next(moments),
    ).due(soon(yard))
    assert len(cluster_ids) == 1
