"""A node whose Node object somebody deletes ends, and its pool has another; one that joins again in time stays."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

from stockyard.domain.records import Fact, NodeClaim
from stockyard.domain.values import times
from stockyard.lifecycle.nodes.node_claim import MOVES
from stockyard.operations.engine.watch import watch
from stockyard.operations.fleet.pools.pools import claims_of
from stockyard.operations.machines.observe import ATTENDED
from stockyard.ports import Replace
from tests.unit.operations.fleet.disruption.conftest import POOL, Pods, pod
from tests.unit.operations.fleet.disruption.test_run import LARGE, NOW, idle, reasons

KEPT_FIELDS = {"disruption": {**NOW, "consolidate_after": "Never"}}


def delete_nodes(pods: Pods, *names: str) -> None:
    """As the report with which they are gone does."""
    pods.gone_names |= set(names)
    pods.bind()
    watch(pods.yard.nodes.services, pods.yard.cluster.id)


def living_names(pods: Pods) -> set[str]:
    claims = claims_of(pods.yard.nodes.services, pods.yard.cluster.id)
    return {claim.node_name for claim in claims if not claim.deleting}


def with_joined(claim: NodeClaim, now: str) -> NodeClaim:
    """The claim whose node has joined just now."""
    waiting = MOVES.condition(MOVES.touch(claim, now), "Joined", "Unknown", "Pending", "", now)
    return MOVES.condition(waiting, "Joined", "True", "Joined", "", now)


def joined(claim: NodeClaim) -> tuple[str, str]:
    [condition] = [part for part in claim.conditions if part.type == "Joined"]
    return condition.status, condition.reason


def test_a_node_that_is_deleted_in_its_cluster_ends_and_its_pods_get_another(pods: Pods) -> None:
    idle(pods, 2, **KEPT_FIELDS)
    first, second = sorted(pods.on)
    pods.on[first] = [pod("7500m", "1Gi")]
    delete_nodes(pods, first)
    pods.run(1)
    [claim] = [claim for claim in pods.yard.claims(POOL) if claim.node_name == first]
    assert joined(claim) == ("False", "NodeGone")
    assert "NodeGone" in pods.yard.reasons(claim.id)
    # Its room is not counted meanwhile.
    assert len(pods.yard.claims(POOL)) == 3
    pods.run(3)
    assert first not in living_names(pods)
    assert second in living_names(pods)
    assert (pods.types(), pods.waiting) == ([LARGE] * 2, [])
    assert "Repaired" in reasons(pods)
    assert pods.record().message == f"1 nodes leave (NodeGone): {claim.name}."


def test_a_node_that_is_deleted_as_soon_as_it_has_joined_is_gone_once_the_agent_vouches_for_that(pods: Pods) -> None:
    idle(pods, 1, **KEPT_FIELDS)
    [first] = pods.on
    services, workload_of_pods = pods.yard.nodes.services, pods.workload
    [claim] = pods.yard.claims(POOL)
    services.store.commit(Replace(replace(with_joined(claim, services.now()), sequence=claim.sequence + 1)))
    reported = replace(workload_of_pods(), observed_at=services.now(), nodes={})
    pods.workload = lambda: reported
    delete_nodes(pods, first)
    pods.run(1)
    [claim] = pods.yard.claims(POOL)
    assert joined(claim) == ("True", "Joined")
    # The agent is asked to say soon whether it is still so, and the next look is soon.
    assert services.store.get(Fact, f"{pods.yard.cluster.id}/{ATTENDED}") is not None
    assert times.from_text(str(pods.record().due_at)) <= services.clock.now() + timedelta(minutes=1)
    reported = replace(reported, vouched_until=services.now())
    pods.run(1)
    assert joined(pods.yard.claims(POOL)[0]) == ("False", "NodeGone")


def test_a_static_pool_replaces_it_too(pods: Pods) -> None:
    pods.yard.dynamic_pool(POOL, disruption=NOW)
    pods.yard.pool("base", quantity=2)
    pods.run(3)
    [first, _] = sorted(pods.on)
    delete_nodes(pods, first)
    pods.run(5)
    assert first not in living_names(pods)
    assert len(pods.claims()) == 2


def test_a_node_that_joins_again_in_time_stays(pods: Pods) -> None:
    idle(pods, 2, **KEPT_FIELDS)
    first, _ = sorted(pods.on)
    delete_nodes(pods, first)
    pods.yard.nodes.clock.advance(1)
    pods.look()
    pods.gone_names.clear()
    pods.run(3)
    [claim] = [claim for claim in pods.yard.claims(POOL) if claim.node_name == first]
    assert (joined(claim), claim.deleting) == (("True", "JoinedAgain"), False)


def test_a_node_whose_time_is_over_is_looked_at_later_while_the_agent_is_silent(pods: Pods) -> None:
    idle(pods, 2, **KEPT_FIELDS)
    delete_nodes(pods, min(pods.on))
    pods.run(1)
    pods.age = 600.0
    pods.yard.nodes.clock.advance(300)
    pods.look()
    assert str(pods.record().due_at) > pods.yard.nodes.services.now()


def test_of_many_nodes_that_are_gone_a_fifth_ends_at_once(pods: Pods) -> None:
    idle(pods, 6, **KEPT_FIELDS)
    names = set(pods.on)
    delete_nodes(pods, *names)
    remaining = []
    for _ in range(6):
        pods.run(1)
        remaining.append(len(names & living_names(pods)))
    # The first look notes it; each of the next ends two of up to ten nodes.
    assert remaining == sorted(remaining, reverse=True)
    assert all(before - after <= 3 for before, after in pairwise(remaining))
    assert (remaining[0], remaining[-1]) == (6, 0)
    assert pods.waiting == []


def test_an_agent_that_tells_of_no_nodes_ends_none(pods: Pods) -> None:
    idle(pods, 2, **KEPT_FIELDS)
    workload = pods.workload
    pods.workload = lambda: replace(workload(), nodes=None)
    pods.run(5)
    assert len(living_names(pods)) == 2
