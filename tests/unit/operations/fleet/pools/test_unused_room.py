"""Pods that wait in spite of room: it is said, another node is made in time, and never more than help."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.pools.workload_records import UnusedRoom
from stockyard.operations.fleet.pools import unused_room
from stockyard.operations.machines.pending_pods import forgetting
from stockyard.ports import Remove, Replace
from tests.unit.operations.fleet.disruption.conftest import POOL, Pods, pod, pods, yard

__all__ = ["pods", "yard"]

SMALL = [{"key": "vcluster.com/node-type", "values": ["sim.small"]}]
NEVER = {"consolidate_after": "Never"}
GONE_SOON = {"consolidate_after": "0s", "budgets": []}


def claims_made(played: Pods, name: str = POOL) -> int:
    return played.yard.now(name).claims_made


def condition(played: Pods) -> tuple[str, str]:
    status, _, message = played.yard.condition(played.yard.current(), "PodsHaveRoom")
    return status, message


def with_node(played: Pods, **fields: Any) -> str:
    """A pool whose only node has room for one more pod of a core."""
    played.yard.dynamic_pool(POOL, **{"disruption": NEVER, "requirements": SMALL, **fields})
    played.waiting = [pod("1", "1Gi", "first")]
    played.run(3)
    [name] = played.on
    return name


def test_room_that_pods_do_not_use_is_named_and_after_a_while_not_counted(pods: Pods) -> None:
    first = with_node(pods)
    pods.refuses = lambda each, node: node == first
    pods.waiting, pods.says = [pod("1", "1Gi", "second")], "node(s) had untolerated taint {x: }"
    sentence = f" The cluster's scheduler says: {pods.says}."
    pods.run(1)
    status, message = condition(pods)
    assert (status, claims_made(pods)) == ("True", 1)
    assert f"default/web-0: {first} has room by what the cluster reports, which is not used yet.{sentence}" in message
    pods.run(1)
    status, message = condition(pods)
    assert (status, claims_made(pods)) == ("False", 1)
    assert message.endswith(f" seconds it is not counted.{sentence}")
    pods.run(1)
    status, message = condition(pods)
    assert (status, claims_made(pods)) == ("False", 2)
    assert f"default/web-0: {first} had room" in message
    assert message.endswith(f"so that it is not counted for them any more.{sentence}")
    pods.run(2)
    assert (pods.waiting, claims_made(pods), condition(pods)[0]) == ([], 2, "True")
    # Nothing of it is left for pods that come later.
    record = pods.yard.nodes.services.store.get(UnusedRoom, pods.yard.cluster.id)
    assert record is not None
    assert record.groups == {}


def test_nothing_is_remembered_of_a_cluster_that_goes_meanwhile(pods: Pods, monkeypatch: pytest.MonkeyPatch) -> None:
    first = with_node(pods)
    store, cluster = pods.yard.nodes.services.store, pods.yard.current()
    store.commit(Remove(UnusedRoom, cluster.id))
    plan = unused_room.remember

    def as_it_goes(*arguments: Any) -> Any:
        store.commit(Replace(replace(pods.yard.current(), status="deleting", version=pods.yard.current().version + 1)))
        return plan(*arguments)

    monkeypatch.setattr(unused_room, "remember", as_it_goes)
    pods.refuses = lambda each, node: node == first
    pods.waiting = [pod("1", "1Gi", "second")]
    pods.run(1)
    assert store.get(UnusedRoom, cluster.id) is None


@pytest.mark.parametrize("disruption", [NEVER, GONE_SOON])
def test_after_two_nodes_that_took_none_no_third_is_made(pods: Pods, disruption: dict[str, Any]) -> None:
    """Whether they stay, or go because they are empty."""
    pods.yard.dynamic_pool(POOL, disruption=disruption, requirements=SMALL)
    stuck = pod("1", "1Gi", "stuck")
    pods.refuses = lambda each, node: each == stuck
    pods.waiting, pods.says = [stuck], "Insufficient cpu"
    pods.run(60)
    assert claims_made(pods) == 2
    status, message = condition(pods)
    assert status == "False"
    assert "default/web-0" in message
    assert "took none of them" in message
    assert "The cluster's scheduler says: Insufficient cpu." in message
    for claim in pods.claims():
        assert claim.node_name in message
    # Other pods of the pool go on.
    pods.waiting += [pod("2", "1Gi", "other")] * 3
    pods.run(5)
    assert pods.waiting == [stuck]
    # What the pool makes may be another node by now.
    before = claims_made(pods)
    pods.yard.nodes.services.store.commit(_changed(pods.yard.now(POOL)))
    pods.run(30)
    assert claims_made(pods) == before + 2


def _changed(pool: Any) -> Any:
    return Replace(replace(pool, generation=pool.generation + 1, version=pool.version + 1))


def test_a_node_that_changes_is_tried_again(pods: Pods) -> None:
    first = with_node(pods)
    stuck = pod("1", "1Gi", "stuck")
    pods.refuses = lambda each, node: each == stuck
    pods.waiting = [stuck]
    pods.run(20)
    assert claims_made(pods) == 3
    pods.facts[first] = {"taints": ()}
    pods.refuses = lambda each, node: False
    pods.bind()
    assert pods.waiting == []
    pods.run(2)
    assert condition(pods)[0] == "True"


def test_nodes_that_are_filled_by_others_are_no_failure(pods: Pods) -> None:
    """Each new node is taken by pods of another kind before those that it was made for come."""
    pods.yard.dynamic_pool(POOL, disruption=NEVER, requirements=SMALL)
    late = pod("2", "1Gi", "late")
    pods.waiting = [late]
    for number in range(4):
        pods.run(1)
        thief = pod("2", "1Gi", f"thief-{number}")
        pods.waiting.insert(0, thief)
        pods.bind()
    pods.run(6)
    assert pods.waiting == []


def test_headroom_that_finds_no_room_buys_two_nodes_at_most(pods: Pods) -> None:
    """Something takes of each node what a plan has free."""
    pods.yard.dynamic_pool(POOL, disruption=NEVER, requirements=SMALL, headroom={"cpu": "1"})
    facts: dict[str, dict[str, Any]] = {}
    for _ in range(30):
        facts |= {claim.node_name: {"allocatable": {"cpu": "500m"}} for claim in pods.claims()}
        pods.facts = facts
        pods.run(1)
    assert claims_made(pods) == 2


def test_what_is_learned_goes_with_its_cluster(pods: Pods) -> None:
    writes = forgetting(pods.yard.cluster.id)
    assert any(getattr(write, "kind", None) is UnusedRoom for write in writes)


def test_a_claim_names_the_pods_that_it_is_made_for(pods: Pods) -> None:
    with_node(pods)
    [claim] = pods.yard.claims(POOL)
    assert claim.pod_groups == ("g0",)


def test_a_pool_says_which_limit_keeps_pods_waiting(pods: Pods) -> None:
    pods.yard.dynamic_pool(POOL, disruption=NEVER, requirements=SMALL, limits={"nodes": "1"})
    pods.waiting = [pod("2", "1Gi", "web")] * 3
    pods.run(4)
    expected = "The pool's limit of nodes is reached: default/web-0 and 1 like it wait."
    assert pods.yard.condition(pods.yard.now(POOL), "WithinLimits") == ("False", "LimitReached", expected)
    version = pods.yard.now(POOL).version
    pods.yard.look()
    assert pods.yard.now(POOL).version == version
    pods.waiting.clear()
    pods.run(1)
    assert pods.yard.condition(pods.yard.now(POOL), "WithinLimits")[0] == "True"
