"""Nodes that are too old, not ready, or about to be taken back by their cloud: others come in their place first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.pools.disruption_records import REPLACING
from stockyard.domain.records import NodeClaim
from stockyard.lifecycle.nodes import interruption
from stockyard.operations.engine.watch import watch
from stockyard.operations.node_claims.delete import give_back
from stockyard.ports import Replace
from tests.unit.operations.fleet.disruption.conftest import POOL, Pods, pod
from tests.unit.operations.fleet.disruption.test_run import LARGE, NOW, SMALL, idle, reasons, until

DAY = 24 * 60


def alone(pods: Pods, **fields: Any) -> str:
    """One small node, full; its name."""
    pods.yard.dynamic_pool(POOL, **{"disruption": NOW, **fields})
    pods.waiting = [pod("1500m")]
    pods.run(4)
    assert pods.types() == [SMALL]
    return next(iter(pods.on))


def wait(pods: Pods, minutes: int) -> None:
    """Let time pass in which nothing happens."""
    pods.yard.nodes.clock.advance(60 * minutes)


def change(pods: Pods, claim: NodeClaim, **fields: Any) -> NodeClaim:
    changed: NodeClaim = replace(claim, version=claim.version + 1, **fields)
    pods.yard.nodes.services.store.commit(Replace(changed))
    return changed


def recommend(pods: Pods, name: str) -> None:
    """The cloud says that it may take the machine back soon."""
    (claim,) = [claim for claim in pods.claims() if claim.node_name == name]
    news = interruption.recommend(claim, pods.yard.nodes.services.now())
    assert news is not None
    pods.yard.nodes.services.store.commit(Replace(replace(news[0], sequence=news[0].sequence + 1)))
    watch(pods.yard.nodes.services, pods.yard.cluster.id, begin=True)


def test_a_node_that_is_too_old_is_replaced_first(pods: Pods) -> None:
    old = alone(pods, expire_after="720h")
    wait(pods, 29 * DAY)
    pods.run(5)
    assert list(pods.on) == [old]
    wait(pods, DAY)
    pods.fewest = 10
    pods.run(10)
    assert old not in pods.on
    assert (pods.types(), pods.fewest, pods.waiting) == ([SMALL], 1, [])
    assert pods.record().message.startswith("Expired: 1 nodes go")


def test_an_expired_node_leaves_whatever_its_pods_and_general_budgets_say(pods: Pods) -> None:
    old = alone(pods, expire_after="1h", disruption={**NOW, "budgets": [{"nodes": "0"}]})
    pods.facts[old] = {"do_not_disrupt": True, "doubly_guarded": 1}
    wait(pods, 60)
    pods.run(10)
    assert old not in pods.on
    assert pods.types() == [SMALL]


def test_expiry_waits_for_a_window_that_names_it(pods: Pods) -> None:
    """Outside of the nights from 22:00 to 04:00 no node may expire. The clock begins at noon."""
    closed = {"nodes": "0", "reasons": ["Expired"], "schedule": "0 4 * * *", "duration": "18h"}
    old = alone(pods, expire_after="2h", disruption={**NOW, "budgets": [closed]})
    wait(pods, 4 * 60)
    pods.run(10)
    assert list(pods.on) == [old]
    wait(pods, 7 * 60)
    pods.run(10)
    assert old not in pods.on
    assert not pods.waiting


def test_never_and_static_pools_without_it_do_not_expire(pods: Pods) -> None:
    old = alone(pods, expire_after="Never")
    wait(pods, 3000 * DAY)
    pods.run(10)
    assert list(pods.on) == [old]


def test_a_static_pool_replaces_what_expires(pods: Pods) -> None:
    pods.yard.pool("fixed", quantity=3, expire_after="24h")
    pods.run(4)
    before = {claim.id for claim in pods.claims()}
    assert len(before) == 3
    wait(pods, DAY)
    pods.fewest = 10
    pods.run(12)
    after = {claim.id for claim in pods.claims()}
    assert (len(after), before & after, pods.fewest) == (3, set(), 3)


def test_a_node_that_may_be_taken_back_leaves_when_another_is_there(pods: Pods) -> None:
    warned = alone(pods, disruption={**NOW, "budgets": [{"nodes": "0"}]})
    recommend(pods, warned)
    pods.yard.look()
    assert len(pods.yard.claims(POOL)) == 2, "the replacement is asked for by the first pass after the warning"
    pods.fewest = 10
    pods.run(10)
    assert warned not in pods.on
    assert (pods.types(), pods.fewest, pods.waiting) == ([SMALL], 1, [])


def test_a_static_pool_replaces_what_may_be_taken_back(pods: Pods) -> None:
    pods.yard.pool("fixed", quantity=2)
    pods.run(4)
    warned = pods.claims()[0]
    recommend(pods, warned.node_name)
    pods.fewest = 10
    pods.run(10)
    assert warned.id not in {claim.id for claim in pods.claims()}
    assert (len(pods.claims()), pods.fewest) == (2, 2)


def test_nothing_new_goes_to_a_node_that_may_be_taken_back(pods: Pods) -> None:
    """The node has room for the pod that waits, but not for long."""
    pods.yard.dynamic_pool(POOL, disruption={**NOW, "consolidate_after": "Never"})
    pods.waiting = [pod("500m")]
    pods.run(4)
    (warned,) = pods.on
    pods.yard.nodes.clock.advance(1)
    recommend(pods, warned)
    pods.waiting = [pod("200m", app="late")]
    pods.yard.look()
    replacements = [claim for claim in pods.yard.claims(POOL) if claim.node_name != warned]
    assert [claim.resources["cpu"] for claim in replacements] == ["700m"]


def test_pods_of_a_node_that_leaves_get_the_next_one_before_they_have_left(pods: Pods) -> None:
    leaving = alone(pods)
    (claim,) = pods.claims()
    give_back(pods.yard.nodes.services, claim, "somebody")
    pods.yard.look()
    new = [claim for claim in pods.yard.claims(POOL) if not claim.deleting]
    assert len(new) == 1
    pods.yard.look()
    assert len([claim for claim in pods.yard.claims(POOL) if not claim.deleting]) == 1, "and only once"
    assert leaving in pods.on


def test_a_replacement_is_not_empty_while_the_pods_it_is_for_have_not_left_yet(pods: Pods) -> None:
    """A budget may hold them on the old node for long."""
    any_type = [{"key": "vcluster.com/node-type", "operator": "Exists"}]
    pods.yard.dynamic_pool(POOL, disruption=NOW, requirements=any_type)
    pods.waiting = [pod("7500m")]
    pods.run(4)
    (old,) = pods.on
    pods.on[old] = [pod("1")]
    until(pods, REPLACING)
    pods.run(2)
    for _ in range(15):
        pods.on = {**pods.on, old: [pod("1")]}  # the drain has not moved them
        pods.yard.nodes.clock.advance(60)
        watch(pods.yard.nodes.services, pods.yard.cluster.id)
        pods.look()
        pods.yard.look()
        assert SMALL in pods.types()
    assert len([claim for claim in pods.yard.claims(POOL) if not claim.deleting]) == 1


def unready(pods: Pods, name: str) -> None:
    """From now on."""
    since = pods.yard.nodes.services.now()
    pods.facts[name] = {"ready": "False", "ready_since": since}


def test_a_node_that_stays_not_ready_is_replaced(pods: Pods) -> None:
    broken = alone(pods)
    unready(pods, broken)
    pods.run(25)
    assert list(pods.on) == [broken]
    pods.run(15)
    assert broken not in pods.on
    assert (pods.types(), pods.waiting) == ([SMALL], [])
    assert reasons(pods) == ["Repaired"]


def test_a_node_that_comes_back_in_time_stays(pods: Pods) -> None:
    name = alone(pods)
    unready(pods, name)
    pods.run(25)
    del pods.facts[name]
    pods.run(60)
    assert list(pods.on) == [name]
    assert reasons(pods) == []


def test_where_many_are_not_ready_nobody_is_repaired(pods: Pods) -> None:
    """More than a fifth of the pool: the network is broken rather than the nodes."""
    idle(pods, 4, disruption={**NOW, "consolidate_after": "Never"})
    first, second = sorted(pods.on)[:2]
    unready(pods, first)
    unready(pods, second)
    pods.run(60)
    assert pods.types() == [LARGE] * 4
    del pods.facts[second]
    pods.run(10)
    assert first not in pods.on


@pytest.mark.parametrize("age", [None, 10_000.0])
def test_nothing_is_repaired_on_old_news(pods: Pods, age: float | None) -> None:
    broken = alone(pods)
    unready(pods, broken)
    pods.run(1)
    pods.age = age
    pods.run(60)
    assert list(pods.on) == [broken]


def test_a_pool_that_lets_nodes_become_less_old_has_drifted_nodes_and_no_expired_ones(pods: Pods) -> None:
    """A node keeps the age that it was promised: else all would leave at once, past every protection."""
    old = alone(pods, expire_after="720h", disruption={**NOW, "budgets": [{"nodes": "0"}]})
    pods.facts[old] = {"do_not_disrupt": True}
    store, current = pods.yard.nodes.services.store, pods.yard.now(POOL)
    store.commit(Replace(replace(current, expire_after="1h", version=current.version + 1)))
    pods.yard.nodes.hours(3)
    pods.run(20)
    assert list(pods.on) == [old]


def test_a_claim_that_was_made_before_claims_knew_their_age_asks_its_pool(pods: Pods) -> None:
    old = alone(pods, expire_after="1h")
    (claim,) = pods.claims()
    store = pods.yard.nodes.services.store
    store.commit(Replace(replace(claim, expire_after="", version=claim.version + 1)))
    pods.yard.nodes.hours(2)
    pods.run(20)
    assert old not in pods.on


def test_a_node_with_a_pod_that_cannot_be_read_is_neither_empty_nor_has_it_room(
    pods: Pods, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle(pods, 2)
    first = min(pods.on)
    pods.on[first] = []
    reports = pods.workload
    obscure = {first: "/spec/tolerations/0/operator: Equal or Exists is needed"}
    monkeypatch.setattr(pods, "workload", lambda: replace(reports(), obscure=obscure))
    pods.run(10)
    assert pods.types() == [LARGE, LARGE]
    monkeypatch.setattr(pods, "workload", reports)
    pods.last_picture = ""
    pods.run(10)
    assert pods.types() == [LARGE]
