"""Decisions that are given up: what was made for them goes back, they are not repeated at once, and others go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from stockyard.domain.models.pools.pools import PoolPatch
from stockyard.domain.pools.disruption_records import IDLE, REPLACING
from stockyard.domain.values.conditions import Condition
from stockyard.errors import VendorRefused
from stockyard.operations.fleet.disruption import carry_out, hopeless
from stockyard.operations.fleet.disruption.pause import pause_cluster, pause_tenant
from stockyard.operations.fleet.pools.claims import commit_claims
from stockyard.operations.fleet.pools.pools import change_pool
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.ports import Outcome, Replace
from stockyard.ports.node_work import NodeWork
from tests.unit.operations.fleet.disruption.conftest import POOL, ROOM, Pods, pod
from tests.unit.operations.fleet.disruption.test_forced import recommend
from tests.unit.operations.fleet.disruption.test_run import LARGE, NOW, SMALL, drift, idle, reasons, small_only, until

NO_SMALL = {("sim", "small", zone) for zone in ("*", "global")}
"""What the provider refuses to launch."""
ONLY_LARGE = [{"key": "vcluster.com/node-type", "values": [LARGE]}]


def change(pods: Pods, **disruption: Any) -> None:
    """As a request of the tenant does that changes the pool's rules of disruption."""
    patch(pods, disruption=disruption)


def patch(pods: Pods, **fields: Any) -> None:
    """As a request of the tenant does that changes the pool."""
    current = pods.yard.now(POOL)
    changed = PoolPatch.model_validate(fields).apply_to(current)
    change_pool(pods.yard.nodes.services, pods.yard.current(), current, current.version, changed, "user:a", "request")


def pause_pool(pods: Pods) -> None:
    change(pods, paused=True)


def switch_cluster(pods: Pods) -> None:
    pause_cluster(pods.yard.nodes.services, pods.yard.current(), paused=True)


def switch_tenant(pods: Pods) -> None:
    pause_tenant(pods.yard.nodes.services, paused=True)


@pytest.mark.parametrize("pause", [pause_pool, switch_cluster, switch_tenant])
def test_a_pause_gives_a_decision_up_at_the_next_look(pods: Pods, pause: Callable[[Pods], None]) -> None:
    small_only(pods)
    until(pods, REPLACING)
    pause(pods)
    pods.run(1)
    assert pods.record().state == IDLE
    assert "is paused" in pods.record().message
    assert pods.record().held_until == {}
    pods.run(30)
    assert pods.types() == [LARGE]
    assert len(pods.yard.claims(POOL)) == 1, "what was being made is given back"


@pytest.mark.parametrize(
    "rule",
    [{"budgets": [{"nodes": "0"}]}, {"consolidation_policy": "WhenEmpty"}, {"minimum_saving": 0.25}],
    ids=["budget", "policy", "least saving"],
)
def test_a_rule_that_changes_meanwhile_is_kept_and_the_new_node_goes_back(pods: Pods, rule: dict[str, Any]) -> None:
    small_only(pods)
    (old,) = pods.on
    until(pods, REPLACING)
    change(pods, **rule)
    pods.run(8)
    assert list(pods.on) == [old]
    assert pods.types() == [LARGE]
    assert reasons(pods)[-1] == "DisruptionAbandoned"


def test_a_new_node_that_has_pods_by_now_stays(pods: Pods) -> None:
    small_only(pods)
    (old,) = pods.on
    until(pods, REPLACING)
    pods.waiting = [pod("8", app="late")]
    change(pods, budgets=[{"nodes": "0"}])
    while len(pods.claims()) < 2:
        pods.run(1)
    pods.run(8)
    late = [name for name, here in pods.on.items() if any(dict(each.labels)["app"] == "late" for each in here)]
    assert len(late) == 1
    assert old in pods.on


def test_part_of_the_nodes_does_not_go_where_that_saves_nothing(pods: Pods) -> None:
    """Five small nodes are to become a large one; four of them are held when it comes."""
    small_nodes = [{"key": "vcluster.com/node-type", "values": [SMALL]}]
    pods.yard.dynamic_pool(POOL, disruption=NOW, requirements=small_nodes)
    pods.waiting = [pod("1500m", app=f"app-{number}") for number in range(5)]
    pods.run(4)
    assert pods.types() == [SMALL] * 5
    patch(pods, requirements=[{"key": "vcluster.com/node-type", "operator": "Exists"}])
    until(pods, REPLACING)
    names = [claim.node_name for claim in pods.claims() if claim.id in pods.record().nodes]
    assert len(names) == 5
    for name in names[:-1]:
        pods.facts[name] = {"do_not_disrupt": True}
    pods.run(20)
    assert pods.types() == [SMALL] * 5
    assert set(names) <= set(pods.on)
    assert Counter(reasons(pods))["Disrupted"] == 0
    assert pods.record().savings == {}


def bare_metal(pods: Pods) -> list[str]:
    """A drifted static pool of 3 on a provider of 3 machines, beside 3 large nodes whose pods need one."""
    ROOM["metal.few"] = (2000, 4)
    resources = {"cpu": "2", "memory": "4Gi"}
    pods.yard.nodes.provider("metal", {"name": "few", "resources": resources, "usdPerHour": 0.05, "maxCapacity": 3})
    only_metal = [{"key": "vcluster.com/node-type", "values": ["metal.few"]}]
    pods.yard.pool("fixed", quantity=3, disruption={"budgets": [{"nodes": "1"}]}, requirements=only_metal)
    pods.yard.dynamic_pool(POOL, disruption=NOW, requirements=ONLY_LARGE)
    pods.waiting = [pod("7500m", app=app) for app in "abc"]
    pods.run(6)
    large = [claim.node_name for claim in pods.claims() if claim.pool == POOL]
    drift(pods, [claim for claim in pods.claims() if claim.pool == "fixed"])
    pods.last_picture = ""
    return large


def test_drift_that_cannot_be_carried_out_stops_nothing_else(pods: Pods) -> None:
    for name in bare_metal(pods):
        pods.on[name] = [pod("2500m")]
    pods.run(60)
    assert pods.types().count(LARGE) == 1
    assert pods.record().is_held("Drifted/fixed", pods.yard.nodes.services.now())


def test_what_fails_again_and_again_is_tried_less_and_less(pods: Pods) -> None:
    bare_metal(pods)
    pods.run(24 * 60)
    assert Counter(reasons(pods))["DisruptionAbandoned"] < 12
    assert pods.record().held_times["Drifted/fixed"] > 4


def test_what_was_carried_out_is_held_back_no_more(pods: Pods) -> None:
    small_only(pods)
    (old,) = pods.claims()
    pods.yard.nodes.refused |= NO_SMALL
    until(pods, REPLACING)
    pods.run(2)
    assert pods.record().held_times == {f"Underutilized/{old.id}": 1, f"Type/{SMALL}": 1}
    pods.yard.nodes.refused -= NO_SMALL
    pods.run(40)
    assert pods.types() == [SMALL]
    assert not any(key.startswith("Underutilized") for key in (*pods.record().held_times, *pods.record().held_until))


def test_what_a_cloud_takes_back_leaves_while_something_else_is_being_replaced(
    pods: Pods, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hopeless, "_is_unplaceable", lambda *_: False)
    only_small = [{"key": "vcluster.com/node-type", "values": [SMALL]}]
    pods.yard.pool("fixed", quantity=1, requirements=only_small)
    pods.run(4)
    pods.yard.dynamic_pool(POOL, disruption=NOW, requirements=ONLY_LARGE)
    pods.waiting = [pod("7500m")]
    pods.run(4)
    (warned,) = [claim.node_name for claim in pods.claims() if claim.pool == POOL]
    drift(pods, [claim for claim in pods.claims() if claim.pool == "fixed"])
    pods.yard.nodes.refused |= NO_SMALL
    pods.last_picture = ""
    until(pods, REPLACING)
    recommend(pods, warned)
    pods.run(4)
    assert pods.record().state == REPLACING
    assert warned not in pods.on
    assert not pods.waiting


def test_a_pool_that_changes_while_its_decision_starts_costs_no_rest(
    pods: Pods, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another pass writes the pool's record in between: the next look decides the same again."""
    small_only(pods)
    changes = iter([1, 2])

    def overtaken(*arguments: Any) -> Any:
        if next(changes, None) is not None:
            current = pods.yard.now(POOL)
            pods.yard.nodes.services.store.commit(Replace(replace(current, version=current.version + 1)))
        return commit_claims(*arguments)

    monkeypatch.setattr(carry_out, "commit_claims", overtaken)
    pods.run(14)
    assert pods.types() == [SMALL]


def test_empty_nodes_and_replacements_are_no_sign_of_pods_without_room(pods: Pods) -> None:
    idle(pods, 3)
    pods.run(8)
    assert pods.types() == [LARGE]
    drift(pods, pods.claims())
    pods.last_picture = ""
    pods.run(10)
    assert reasons(pods)[-1] == "Disrupted"
    pods.on = {name: [] for name in pods.on}
    pods.run(5)
    assert pods.types() == []
    pods.waiting = [pod("7500m")]
    pods.run(10)
    assert (pods.record().careful_until, pods.record().rests_until) == ("", "")


def refuse_small(pods: Pods, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a provider does that has no image for the type: the refusal is for good."""
    (source,) = {id(each): each for each in pods.yard.nodes.services.node_sources.values()}.values()
    launch = source.launch

    def refusing(work: NodeWork) -> Outcome:
        if work.claim.type_ref == SMALL:
            raise VendorRefused("no image serves small")
        return launch(work)

    monkeypatch.setattr(source, "launch", refusing)


def test_a_replacement_that_fails_ends_its_decision_and_holds_nobody_else(
    pods: Pods, monkeypatch: pytest.MonkeyPatch
) -> None:
    ROOM["other.medium"] = (4000, 8)
    medium = {"name": "medium", "resources": {"cpu": "4", "memory": "8Gi"}, "usdPerHour": 0.2}
    pods.yard.nodes.provider("other", medium)
    small_only(pods)
    patch(pods, requirements=[{"key": "vcluster.com/node-type", "operator": "Exists"}])
    (old,) = pods.claims()
    refuse_small(pods, monkeypatch)
    until(pods, REPLACING)
    begun_at = pods.record().decided_at
    while pods.record().state == REPLACING:
        pods.run(1)
    assert pods.yard.nodes.services.seconds_since(begun_at) < 180
    assert pods.record().message == "A replacement did not come: no image serves small"
    assert not pods.record().no_savings_until(pods.yard.nodes.services.now())
    assert list(pods.record().held_until) == [f"Underutilized/{old.id}", f"Type/{SMALL}"]
    pods.run(8)
    assert pods.types() == ["other.medium"], "the type that was refused is not tried again at once"
    assert Counter(reasons(pods))["DisruptionAbandoned"] == 1


def test_refused_capacity_ends_a_decision_once_the_scheduler_has_found_nothing_else(pods: Pods) -> None:
    small_only(pods)
    services = pods.yard.nodes.services
    (claim,) = pods.claims()
    refusal = "sim.small could not be had: none is left."
    condition = Condition("Scheduled", "False", "InsufficientCapacity", refusal, services.now())
    fields: dict[str, Any] = {"phase": "Pending", "placement": None, "type_ref": "", "conditions": (condition,)}
    claim = replace(claim, last_refusal=refusal, message=refusal, **fields)
    decision = replace(pods.record(), state=REPLACING, replacements=(claim.id,), decided_at=services.now())
    failure = partial(hopeless.hopeless, services, [], record=decision, waits_for="1 node")
    assert failure([claim]) is None, "the scheduler looks now"
    looked = failure([replace(claim, message="No node type fits: 1 refused of late.")])
    assert looked is not None
    assert looked.message == f"A replacement did not come: {refusal} No node type fits: 1 refused of late."


def test_empty_nodes_leave_after_a_replacement_has_failed(pods: Pods, monkeypatch: pytest.MonkeyPatch) -> None:
    idle(pods, 2)
    first, second = sorted(pods.on)
    pods.on = {first: [pod("1")], second: [pod("7500m")]}
    patch(pods, requirements=[{"key": "vcluster.com/node-type", "operator": "Exists"}])
    refuse_small(pods, monkeypatch)
    until(pods, REPLACING)
    while pods.record().state == REPLACING:
        pods.run(1)
    pods.on[second] = []
    pods.run(2)
    assert list(pods.on) == [first]


def test_a_replacement_that_somebody_removes_ends_its_decision(pods: Pods, monkeypatch: pytest.MonkeyPatch) -> None:
    small_only(pods)
    pods.yard.nodes.refused |= NO_SMALL
    monkeypatch.setattr(hopeless, "_is_unplaceable", lambda *_: False)
    until(pods, REPLACING)
    (new,) = pods.record().replacements
    delete_claim(pods.yard.nodes.services, new, "user:ann")
    pods.run(2)
    assert pods.record().message.startswith("A replacement did not come: ")


def test_a_pool_that_makes_its_replacements_itself_may_try_once_more(
    pods: Pods, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods.yard.pool("fixed", quantity=1, requirements=[{"key": "vcluster.com/node-type", "values": [SMALL]}])
    pods.run(4)
    drift(pods, pods.claims())
    pods.last_picture = ""
    refuse_small(pods, monkeypatch)
    until(pods, REPLACING)
    pods.run(6)
    assert "A replacement did not come: " in pods.record().message
    assert pods.record().is_held("Drifted/fixed", pods.yard.nodes.services.now())
    assert pods.types() == [SMALL]


def test_a_replacement_that_fails_lets_nobody_wait(pods: Pods, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool of the replacement goes on making nodes for pods: the decision has ended, and remembers what could not
    be had."""
    small_only(pods)
    refuse_small(pods, monkeypatch)
    until(pods, REPLACING)
    for _ in range(4):
        pods.run(1)
        assert pods.yard.now(POOL).retry_at is None
    assert pods.record().held_types(pods.yard.nodes.services.now()) == {SMALL}
    patch(pods, requirements=ONLY_LARGE)
    pods.waiting = [pod("7500m", "1Gi", "next")]
    pods.run(1)
    assert len(pods.yard.claims(POOL)) == 2, "asked for at once"
