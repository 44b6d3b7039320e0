"""Nodes that cost too much, stand empty or have drifted leave, and no pod is without a place for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.pools.disruption_records import IDLE, PROPOSED, REPLACING
from stockyard.domain.pools.workload_records import ProtectedPod
from stockyard.domain.records import Fact, NodeClaim
from stockyard.domain.values.conditions import Condition, with_condition
from stockyard.errors import StoreUnavailable
from stockyard.lifecycle.nodes.node_phases import NOT_DRIFTED
from stockyard.lifecycle.phases import DEGRADED
from stockyard.operations.engine.watch import watch
from stockyard.operations.fleet.disruption import carry_out
from stockyard.operations.fleet.disruption.give_up import abandon
from stockyard.operations.fleet.disruption.run import view_now
from stockyard.operations.fleet.pools.claims import commit_claims
from stockyard.operations.fleet.state import Workload
from stockyard.operations.listing import every
from stockyard.ports import Replace, Store, Write
from tests.unit.operations.fleet.disruption.conftest import POOL, Pods, pod

NOW = {"consolidate_after": "0s", "budgets": []}
LARGE, SMALL = "sim.large", "sim.small"


def idle(pods: Pods, count: int = 2, **fields: Any) -> None:
    """``count`` large nodes that were full once, with one pod on each now."""
    only_large = [{"key": "vcluster.com/node-type", "values": [LARGE]}]
    pods.yard.dynamic_pool(POOL, **{"disruption": NOW, "requirements": only_large, **fields})
    pods.waiting = [pod("7500m", "1Gi", f"app-{number}") for number in range(count)]
    pods.run(4)
    assert pods.types() == [LARGE] * count
    for number, name in enumerate(sorted(pods.on)):
        pods.on[name] = [pod("1", "1Gi", f"app-{number}")]


def reasons(pods: Pods) -> list[str]:
    """Reasons in the events of decisions."""
    return pods.yard.reasons(f"disruption/{pods.yard.cluster.id}")


def until(pods: Pods, state: str) -> None:
    """Go on until the decision is in this state."""
    for _ in range(5):
        pods.run(1)
        if pods.record().state == state:
            return
    raise AssertionError(pods.record())


def test_pods_that_differ_in_their_deletion_cost_alone_all_need_room(
    pods: Pods, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of four pods of 2 cores are dearer to lose. There is room for two of the four elsewhere."""
    idle(pods, 2)
    first, second = sorted(pods.on)
    cheap = pod("2", "1Gi")
    pods.on = {first: [cheap] * 4, second: [pod("3500m", "1Gi")]}
    reports = pods.workload

    def workload() -> Workload:
        picture = reports()
        apart = ((cheap, 2), (replace(cheap, deletion_cost=2**27), 2))
        return replace(
            picture, **{name: {**getattr(picture, name), first: apart} for name in ("running", "reschedulable")}
        )

    monkeypatch.setattr(pods, "workload", workload)
    pods.facts = {second: {"do_not_disrupt": True}}
    pods.yard.nodes.clock.advance(60)
    view, _ = view_now(pods.yard.nodes.services, pods.yard.current(), None, [pods.yard.now(POOL)], pods.claims())
    assert view is not None
    node = next(node for node in view.fleet.nodes if node.name == first)
    assert (sum(count for _, count in node.pods), node.cost) == (4, 1 + 2 + 4)
    pods.run(6)
    assert pods.types() == [LARGE, LARGE]


def test_pods_move_together_and_the_nodes_in_excess_leave(pods: Pods) -> None:
    idle(pods, 3)
    pods.run(8)
    assert pods.types() == [LARGE]
    assert not pods.waiting
    assert len(pods.on[next(iter(pods.on))]) == 3
    assert reasons(pods) == ["DisruptionDecided", "Removing", "Disrupted"]
    assert "0.6000 becomes 0.0000 USD an hour" in pods.record().message


def test_a_cheaper_node_is_there_before_the_dear_one_leaves(pods: Pods) -> None:
    any_type = [{"key": "vcluster.com/node-type", "operator": "Exists"}]
    pods.yard.dynamic_pool(POOL, disruption=NOW, requirements=any_type)
    pods.waiting = [pod("7500m")]
    pods.run(4)
    assert pods.types() == [LARGE]
    pods.on[next(iter(pods.on))] = [pod("1")]
    pods.fewest = 10
    pods.run(8)
    assert (pods.types(), pods.fewest) == ([SMALL], 1)
    assert not pods.waiting


def test_what_has_come_is_waited_for_until_the_agent_has_told_of_it(
    pods: Pods, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replacement is ready a minute before the report of pods that says so."""
    any_type = [{"key": "vcluster.com/node-type", "operator": "Exists"}]
    pods.yard.dynamic_pool(POOL, disruption=NOW, requirements=any_type)
    pods.waiting = [pod("7500m")]
    pods.run(4)
    (old,) = pods.on
    pods.on[old] = [pod("1")]
    until(pods, REPLACING)
    reports, observed_at = pods.workload, pods.workload().observed_at

    def workload() -> Workload:
        picture = reports()
        nodes = {name: facts for name, facts in (picture.nodes or {}).items() if name == old}
        return replace(picture, nodes=nodes, observed_at=observed_at)

    monkeypatch.setattr(pods, "workload", workload)
    pods.run(2)
    assert pods.record().state == REPLACING
    assert pods.record().message == "It waits for news of 1 new nodes."
    monkeypatch.setattr(pods, "workload", reports)
    pods.run(3)
    assert pods.types() == [SMALL]
    assert "DisruptionAbandoned" not in reasons(pods)


@pytest.mark.parametrize(("least", "remaining"), [(0.21, [LARGE]), (0.19, [SMALL])])
def test_what_saves_too_little_for_its_pool_is_not_done(pods: Pods, least: float, remaining: list[str]) -> None:
    any_type = [{"key": "vcluster.com/node-type", "operator": "Exists"}]
    pods.yard.dynamic_pool(POOL, disruption={**NOW, "minimum_saving": least}, requirements=any_type)
    pods.waiting = [pod("7500m")]
    pods.run(4)
    pods.on[next(iter(pods.on))] = [pod("1")]
    pods.run(8)
    assert pods.types() == remaining


def test_empty_nodes_leave(pods: Pods) -> None:
    idle(pods, 2)
    pods.on = {name: [] for name in pods.on}
    pods.run(5)
    assert pods.types() == []
    assert "Empty: 2 nodes go" in pods.record().message


def test_a_floor_is_kept(pods: Pods) -> None:
    idle(pods, 2, floor=2)
    pods.run(8)
    assert pods.types() == [LARGE, LARGE]
    assert reasons(pods) == []


def test_a_budget_lets_few_go_at_a_time(pods: Pods) -> None:
    idle(pods, 4, disruption={**NOW, "budgets": [{"nodes": "1"}]})
    for _ in range(20):
        before = len(pods.types())
        pods.run(1)
        assert before - len(pods.types()) <= 1
    assert pods.types() == [LARGE]


@pytest.mark.parametrize(
    "hold",
    [
        lambda pods, name: pods.facts.update({name: {"do_not_disrupt": True}}),
        lambda pods, name: pods.facts.update({name: {"unschedulable": True}}),
        lambda pods, name: pods.facts.update({name: {"doubly_guarded": 1}}),
        lambda pods, name: pods.facts.update({name: {"budgets": {"default/web": 1}}}),
        lambda pods, name: pods.facts.update(
            {name: {"protected": (ProtectedPod("default/web-1", "true", None),), "protected_count": 1}}
        ),
        lambda pods, _: setattr(pods, "age", None),
        lambda pods, _: setattr(pods, "age", 121.0),
        lambda pods, _: pods.yard.put(conditions=(Condition(DEGRADED, "True", "Failed", "", ""),)),
    ],
    ids=["node", "cordoned", "two budgets", "a budget", "a pod", "no picture", "an old picture", "degraded"],
)
def test_what_may_not_go_stays(pods: Pods, hold: Callable[[Pods, str], None]) -> None:
    idle(pods, 2)
    for name in pods.on:
        hold(pods, name)
    pods.run(6)
    assert pods.types() == [LARGE, LARGE]
    assert pods.record().state == IDLE
    assert "Replacing" not in reasons(pods)


def test_an_agent_is_asked_to_come_often_before_anything_is_decided(pods: Pods) -> None:
    idle(pods, 2)
    pods.age = 500.0
    pods.run(2)
    assert any(fact.id.endswith("/observed-attended") for fact in every(pods.yard.nodes.services.store, Fact))
    pods.age = 10.0
    pods.run(6)
    assert pods.types() == [LARGE]


def test_a_decision_is_carried_out_only_when_a_later_look_comes_to_the_same(pods: Pods) -> None:
    idle(pods, 2)
    until(pods, PROPOSED)
    for name in pods.on:
        pods.facts[name] = {"do_not_disrupt": True}
    pods.run(3)
    assert pods.record().state == IDLE
    assert reasons(pods) == ["DisruptionDecided"]
    assert len(pods.types()) == 2


def small_only(pods: Pods) -> None:
    """One large node that a small one can replace."""
    pods.yard.dynamic_pool(POOL, disruption=NOW)
    pods.waiting = [pod("7500m")]
    pods.run(4)
    pods.on[next(iter(pods.on))] = [pod("1")]


def test_a_replacement_that_does_not_come_ends_the_decision(pods: Pods) -> None:
    small_only(pods)
    pods.yard.nodes.refused |= {("sim", "small", zone) for zone in ("*", "global")}
    pods.run(30)
    assert pods.types() == [LARGE]
    assert reasons(pods)[:3] == ["DisruptionDecided", "Replacing", "DisruptionAbandoned"]
    assert not pods.waiting


def test_nothing_is_decided_for_a_while_after_a_decision_was_given_up(pods: Pods) -> None:
    """Whatever the cluster tells meanwhile: the next one would end the same way."""
    small_only(pods)
    until(pods, REPLACING)
    pods.on[next(iter(pods.on))] = [pod("7")]
    until(pods, IDLE)
    before = len(reasons(pods))
    name = next(iter(pods.on))
    for cores in ("1", "1100m", "1200m", "1300m"):
        pods.on[name] = [pod(cores)]
        pods.run(2)
    assert len(reasons(pods)) == before
    pods.run(8)
    assert len(reasons(pods)) > before


def test_a_look_before_its_time_confirms_nothing(pods: Pods) -> None:
    small_only(pods)
    until(pods, PROPOSED)
    proposed = pods.record()
    pods.yard.nodes.clock.advance(5)
    watch(pods.yard.nodes.services, pods.yard.cluster.id)
    pods.look()
    assert (pods.record().state, pods.record().decided_at) == (PROPOSED, proposed.decided_at)
    assert reasons(pods) == ["DisruptionDecided"]


def test_a_budget_that_closes_meanwhile_keeps_the_nodes(pods: Pods) -> None:
    small_only(pods)
    until(pods, REPLACING)
    store, current = pods.yard.nodes.services.store, pods.yard.now(POOL)
    disruption = {**current.disruption, "budgets": [{"nodes": "0"}]}
    store.commit(Replace(replace(current, disruption=disruption, version=current.version + 1)))
    pods.run(6)
    assert LARGE in pods.types()
    assert reasons(pods)[-1] == "DisruptionAbandoned"
    assert "does not allow it any more" in pods.record().message
    assert pods.record().held_until == {}, "the same may be decided as soon as the budget allows it"


def test_who_makes_replacements_stops_when_the_decision_was_given_up(
    pods: Pods, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another pass may find it too old while the first one is still at work."""
    small_only(pods)
    until(pods, PROPOSED)

    def overtaken(*arguments: Any) -> Any:
        monkeypatch.setattr(carry_out, "commit_claims", commit_claims)
        abandon(pods.yard.nodes.services, pods.record(), "Somebody else was first.")
        return commit_claims(*arguments)

    monkeypatch.setattr(carry_out, "commit_claims", overtaken)
    before = {claim.id for claim in pods.claims()}
    pods.yard.nodes.clock.advance(60)
    pods.look()
    assert pods.record().state == IDLE
    assert {claim.id for claim in pods.yard.claims(POOL)} == before


def test_a_cluster_that_changes_meanwhile_keeps_its_nodes(pods: Pods) -> None:
    """The room on the nodes that stay is taken before the others leave."""
    small_only(pods)
    until(pods, REPLACING)
    pods.on[next(iter(pods.on))] = [pod("7")]
    pods.run(6)
    assert LARGE in pods.types()
    assert "DisruptionAbandoned" in reasons(pods)
    assert not pods.waiting


def drift(pods: Pods, claims: list[NodeClaim]) -> None:
    """As a change of the provider does."""
    store = pods.yard.nodes.services.store
    for claim in claims:
        now = pods.yard.nodes.services.now()
        condition = Condition(NOT_DRIFTED, "False", "TemplateChanged", "Changed since the launch: template.", now)
        conditions = with_condition(claim.conditions, condition)
        store.commit(Replace(replace(claim, conditions=conditions, version=claim.version + 1)))


def test_a_static_pool_is_rolled_with_no_node_less(pods: Pods) -> None:
    pods.yard.pool("fixed", quantity=10)
    pods.run(4)
    old = pods.claims()
    assert len(old) == 10
    drift(pods, old)
    pods.tell()
    pods.last_picture, pods.fewest = "", 10
    pods.run(60)
    assert not {claim.id for claim in old} & {claim.id for claim in pods.claims()}
    assert (len(pods.claims()), pods.fewest) == (10, 10)


def test_looks_count_what_they_did(pods: Pods) -> None:
    """Also a decision that one look makes, begins and ends."""
    idle(pods, 2)
    old, new = sorted(pods.claims(), key=lambda claim: claim.node_name)
    pods.on = {str(old.node_name): [pod("1")], str(new.node_name): [pod("1")]}
    drift(pods, [old])
    watch(pods.yard.nodes.services, pods.yard.cluster.id)
    pods.yard.nodes.clock.advance(60)
    report = pods.look()
    assert (report["decided"], report["started"], report["ended"]) == (1, 1, 1)
    assert pods.record().message.startswith("Drifted: 1 nodes go")


@pytest.mark.parametrize("number", range(1, 8))
def test_a_pass_that_dies_is_finished_or_undone(pods: Pods, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The commit of this number of the passes over disruption fails, and its pass ends."""
    small_only(pods)
    commits, died = iter(range(1, 10_000)), []
    store_type = type(pods.yard.nodes.services.store)
    original, look = store_type.commit, pods.look

    def commit(store: Store, *writes: Write) -> None:
        if next(commits) == number:
            died.append(number)
            raise StoreUnavailable("The table does not answer.")
        original(store, *writes)

    def dying_look() -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(store_type, "commit", commit)
            try:
                return look()
            except StoreUnavailable:
                return {}

    monkeypatch.setattr(pods, "look", dying_look)
    pods.run(40)
    assert pods.types() == [SMALL]
    assert not pods.waiting
    assert pods.record().state == IDLE
    assert died == [number]
