"""Pools come to what they are to have though nothing tells of what has changed: the schedule looks at each in time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.pools.records import NewPool, Pool
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.errors import InUse
from stockyard.lifecycle.pools.pool import LOOK_AGAIN_SECONDS, PODS_HAVE_ROOM, SETTLED_SECONDS
from stockyard.operations.fleet.pools import conditions, groups, pools, reconcile
from stockyard.operations.fleet.pools.autoscaler import Autoscaler
from stockyard.operations.fleet.state import PendingGroup, Workload
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.ports import Replace
from stockyard.scheduling.packing.manifests import read_pod
from tests.unit.operations.fleet.pools.conftest import USER, Yard


def due(yard: Yard) -> Any:
    """The minute's schedule, a second later."""
    yard.nodes.clock.advance(1)
    return Autoscaler(yard.nodes.registry, lambda _: yard.nodes.services).due(yard.nodes.clock.now())


def seconds_until(yard: Yard, pool: Pool) -> float:
    assert pool.due_at is not None
    return -yard.nodes.services.seconds_since(pool.due_at)


def settle_for_long(yard: Yard) -> None:
    """Until the schedule has looked once at a pool that has everything."""
    yard.settle()
    yard.nodes.clock.advance(LOOK_AGAIN_SECONDS)
    due(yard)
    assert LOOK_AGAIN_SECONDS < seconds_until(yard, yard.now()) <= SETTLED_SECONDS


@pytest.mark.parametrize("status", ["preparing", "failed"])
def test_the_schedule_finds_a_cluster_that_became_ready(yard: Yard, status: str) -> None:
    yard.cluster = yard.put(status=status)
    yard.pool()
    yard.look()
    yard.put(status="ready")
    yard.nodes.clock.advance(seconds_until(yard, yard.now()))
    assert due(yard)["claims_created"] == 2


def test_a_failed_cluster_is_looked_at_less_often(yard: Yard) -> None:
    yard.cluster = yard.put(status="failed")
    yard.pool()
    yard.nodes.clock.advance(1)
    yard.look()
    assert LOOK_AGAIN_SECONDS < seconds_until(yard, yard.now()) <= SETTLED_SECONDS


def fail(yard: Yard, claim: NodeClaim) -> None:
    yard.nodes.services.store.commit(Replace(replace(claim, phase="Failed", due_at=None, version=claim.version + 1)))


def delete(yard: Yard, claim: NodeClaim) -> None:
    delete_claim(yard.nodes.services, claim.id, USER)
    yard.nodes.relay()


@pytest.mark.parametrize("harm", [fail, delete])
def test_the_schedule_finds_a_pool_that_lost_a_node(yard: Yard, harm: Callable[[Yard, NodeClaim], None]) -> None:
    yard.pool()
    settle_for_long(yard)
    harm(yard, yard.claims()[0])
    assert due(yard)["clusters"] == 0
    yard.nodes.clock.advance(SETTLED_SECONDS)
    assert due(yard)["claims_created"] == 1
    assert seconds_until(yard, yard.now()) == LOOK_AGAIN_SECONDS, "what was far away is near again"


def test_the_schedule_finds_a_pool_whose_nodes_are_gone(yard: Yard) -> None:
    yard.pool()
    settle_for_long(yard)
    pools.delete_pool(yard.nodes.services, yard.current(), "workers", USER)
    due(yard)
    assert seconds_until(yard, yard.now()) == LOOK_AGAIN_SECONDS
    yard.nodes.relay()
    yard.nodes.clock.advance(LOOK_AGAIN_SECONDS)
    due(yard)
    assert not pools.pools_of(yard.nodes.services, yard.cluster.id)


def test_pods_that_no_type_takes_now_are_looked_at_again(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing tells that a type is to be had again."""
    container = {"resources": {"requests": {"cpu": "1"}}}
    pod = read_pod({"metadata": {"namespace": "default"}, "spec": {"containers": [container]}})
    workload = Workload((), {}, {}, {}, yard.nodes.services.now(), 1)
    monkeypatch.setattr(reconcile, "workload_of", lambda *_: workload)
    yard.dynamic_pool("workers", limits={"nodes": "0"})
    settle_for_long(yard)
    object.__setattr__(workload, "pending", (PendingGroup(pod, 1, "g", ("default/web-1",)),))
    yard.look()
    assert yard.condition(yard.current(), PODS_HAVE_ROOM)[0] == "False"
    assert seconds_until(yard, yard.now()) == LOOK_AGAIN_SECONDS
    version = yard.now().version
    yard.look()
    assert yard.now().version == version, "it is written once"


def test_the_last_pool_of_a_cluster_goes_when_the_cluster_says_so(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that dies before it has changed the cluster is found again by the pool."""
    yard.pool()
    yard.look()
    pools.delete_pool(yard.nodes.services, yard.current(), "workers", USER)
    yard.nodes.relay()
    for claim in yard.claims():
        delete(yard, claim)

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(conditions, "show", die)
        with pytest.raises(KeyboardInterrupt):
            yard.look()
    assert yard.now().deleting
    due(yard)
    assert not pools.pools_of(yard.nodes.services, yard.cluster.id)
    assert yard.condition(yard.current(), "PoolsReady")[0] == "True"


def test_a_provider_is_made_again_while_claims_wait_for_it(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deletion of another cluster may take it away between the check and the claims."""
    pools_seen: list[str] = []

    def ensure(_services: Any, _cluster: Cluster, pool: Pool) -> None:
        pools_seen.append(pool.name)

    monkeypatch.setattr(reconcile, "ensure_provider", ensure)
    assert groups.ensure_provider is not ensure
    yard.pool()
    yard.look()
    yard.look()
    assert pools_seen == ["workers", "workers"]
    yard.settle()
    pools_seen.clear()
    yard.look()
    assert not pools_seen


def test_a_request_that_is_sent_again_finds_its_pool(yard: Yard) -> None:
    services, new_pool = yard.nodes.services, NewPool(name="workers", quantity=1)
    first = pools.create_pool(services, yard.cluster, new_pool, USER, "plr_1")
    assert pools.create_pool(services, yard.cluster, new_pool, USER, "plr_1") == first
    for request in ("plr_2", ""):
        with pytest.raises(InUse):
            pools.create_pool(services, yard.cluster, new_pool, USER, request)


def test_a_pool_is_made_while_its_cluster_goes_on(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    services, check = yard.nodes.services, pools.check_pool
    statuses = iter(("degraded", "ready"))

    def changing(*call: Any) -> None:
        check(*call)
        if status := next(statuses, None):
            current = yard.current()
            services.store.commit(Replace(replace(current, status=status, version=current.version + 1)))

    monkeypatch.setattr(pools, "check_pool", changing)
    pool = pools.create_pool(services, yard.cluster, NewPool(name="workers", quantity=1), USER)
    assert pools.pools_of(services, yard.cluster.id) == [pool]
