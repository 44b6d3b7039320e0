"""The preview of disruption, and the switches that pause it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from stockyard.domain.models.pools.disruption import ClusterDisruptionView, DisruptionPreviewView
from stockyard.domain.models.pools.pools import PoolPatch
from stockyard.domain.pools.disruption_records import IDLE, REPLACING
from stockyard.domain.pools.workload_records import ProtectedPod
from stockyard.domain.values import times
from stockyard.operations.fleet.disruption import preview as previews
from stockyard.operations.fleet.disruption import run as runs
from stockyard.operations.fleet.disruption.pause import pause_cluster, pause_tenant
from stockyard.operations.fleet.disruption.preview import disruption_view
from stockyard.operations.fleet.pools.pools import change_pool
from tests.unit.operations.fleet.disruption.conftest import POOL, Pods, pod
from tests.unit.operations.fleet.disruption.test_given_up import change
from tests.unit.operations.fleet.disruption.test_run import LARGE, NOW, SMALL, drift, idle, reasons, small_only, until

CLOSED = {**NOW, "budgets": [{"nodes": "0"}]}


def preview(pods: Pods) -> dict[str, Any]:
    """The answer, by the model that it is documented with."""
    return DisruptionPreviewView.model_validate(
        previews.preview(pods.yard.nodes.services, pods.yard.current())
    ).model_dump()


def shown_view(pods: Pods) -> dict[str, Any]:
    view = disruption_view(pods.yard.nodes.services, pods.yard.current())
    return ClusterDisruptionView.model_validate(view).model_dump()


@pytest.fixture(autouse=True)
def reports(pods: Pods, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previews, "workload_of", lambda *_: pods.workload())


def test_the_view_names_pools_whose_own_switch_is_set(pods: Pods) -> None:
    pods.yard.dynamic_pool(POOL, disruption={**NOW, "paused": True})
    view = shown_view(pods)
    assert (view["paused_pools"], view["paused_by"]) == ([POOL], None)


def test_a_preview_names_what_would_leave_what_comes_and_what_it_saves(pods: Pods) -> None:
    any_type = [{"key": "vcluster.com/node-type", "operator": "Exists"}]
    pods.yard.dynamic_pool(POOL, disruption={**NOW, "consolidate_after": "1h"}, requirements=any_type)
    pods.waiting = [pod("7500m")]
    pods.run(4)
    (name,) = pods.on
    pods.on[name] = [pod("1")]
    early = preview(pods)
    assert early["decision"] is None
    (node,) = early["nodes"]
    assert (node["leaves"], node["why"]) == (False, "its pods moved less than 1h ago")
    ends = times.from_text(node["until"])
    assert timedelta() < ends - pods.yard.nodes.clock.now() < timedelta(hours=1)
    pods.yard.nodes.clock.advance(3600)
    answer = preview(pods)
    decision = answer["decision"]
    assert (decision["reason"], decision["nodes"]) == ("Underutilized", [name])
    assert [(item["pool"], item["type"]) for item in decision["replacements"]] == [(POOL, SMALL)]
    hourly = decision["usd_hour_before"] - decision["usd_hour_after"]
    assert decision["usd_month_saved"] == pytest.approx(730 * hourly, abs=0.01)
    assert [(item["name"], item["leaves"], item["why"]) for item in answer["nodes"]] == [(name, True, "Underutilized")]
    assert pods.types() == [LARGE]
    assert reasons(pods) == [], "nothing is done by it"


def test_a_preview_whose_time_is_over_shows_nothing_that_a_search_would_have_to_find(
    pods: Pods, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle(pods, 2, disruption={**NOW, "consolidate_after": "1s"})
    pods.yard.nodes.clock.advance(60)
    with monkeypatch.context() as patch:
        patch.setattr(runs, "DEADLINE_SECONDS", 0)
        answer = preview(pods)
    assert (answer["decision"], [node["leaves"] for node in answer["nodes"]]) == (None, [False, False])
    # Nobody is told that nothing can be saved.
    assert "did not finish" in answer["message"]
    assert all("did not finish" in node["why"] for node in answer["nodes"])
    whole = preview(pods)
    assert (whole["decision"]["reason"], "did not finish" in whole["message"]) == ("Underutilized", False)


@pytest.mark.parametrize(
    ("hold", "why"),
    [
        (lambda pods, name: pods.facts.update({name: {"do_not_disrupt": True}}), "do-not-disrupt"),
        (lambda pods, name: pods.facts.update({name: {"unschedulable": True}}), "cordoned"),
        (lambda pods, name: pods.facts.update({name: {"budgets": {"default/web": 1}}}), "default/web allows no"),
        (
            lambda pods, name: pods.facts.update(
                {name: {"protected": (ProtectedPod("default/web-1", "true", None),), "protected_count": 1}}
            ),
            "pod default/web-1 is not to be disrupted",
        ),
    ],
)
def test_a_preview_names_the_rule_that_keeps_each_node(pods: Pods, hold: Callable[[Pods, str], Any], why: str) -> None:
    idle(pods, 2, disruption={**NOW, "consolidate_after": "1s"})
    for name in pods.on:
        hold(pods, name)
    pods.yard.nodes.clock.advance(60)
    answer = preview(pods)
    assert answer["decision"] is None
    assert len(answer["nodes"]) == 2
    assert all(why in node["why"] and not node["leaves"] for node in answer["nodes"])


def test_a_preview_names_budgets_and_policies_too(pods: Pods) -> None:
    idle(pods, 2, disruption=CLOSED)
    assert {node["why"] for node in preview(pods)["nodes"]} == {
        f"the budget of 0 nodes of pool {POOL} lets 0 of its 2 nodes go at a time: no more may go now"
    }
    _patch(pods, {"budgets": [], "consolidation_policy": "WhenEmpty"})
    assert {node["why"] for node in preview(pods)["nodes"]} == {f"pool {POOL} lets only empty nodes go"}


def test_a_preview_says_that_a_budget_or_the_floor_holds_the_other_empty_nodes(pods: Pods) -> None:
    idle(pods, 3, disruption={**NOW, "budgets": [{"nodes": "10%"}]})
    for name in pods.on:
        pods.on[name] = []
    pods.yard.nodes.clock.advance(60)
    leaving, *staying = preview(pods)["nodes"]
    assert (leaving["leaves"], leaving["why"]) == (True, "Empty")
    assert [node["why"] for node in staying] == [
        f"the budget of 10% of pool {POOL} lets 1 of its 3 nodes go at a time: others go first"
    ] * 2
    _patch(pods, {"budgets": []}, floor=2)
    leaving, *staying = preview(pods)["nodes"]
    assert leaving["leaves"]
    assert {node["why"] for node in staying} == {f"pool {POOL} is not to have fewer nodes than its floor of 2"}


def test_a_preview_says_why_nothing_is_known(pods: Pods) -> None:
    idle(pods, 1, disruption=CLOSED)
    pods.yard.put(status="failed")
    assert (preview(pods)["message"], preview(pods)["nodes"]) == ("The cluster is failed.", [])


def test_nodes_that_are_repaired_are_in_the_preview(pods: Pods) -> None:
    idle(pods, 1, disruption=CLOSED)
    (name,) = pods.on
    pods.facts[name] = {"ready": "Unknown", "ready_since": pods.yard.nodes.services.now()}
    pods.yard.nodes.clock.advance(1801)
    assert [(node["name"], node["leaves"], node["why"]) for node in preview(pods)["nodes"]] == [
        (name, True, "NotReady")
    ]


@pytest.mark.parametrize("facts", [None, {"ready": "False"}])
def test_nodes_that_the_agent_does_not_tell_of_are_in_the_preview(
    pods: Pods, facts: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle(pods, 1, disruption=CLOSED)
    (name,) = pods.on
    workload = pods.workload()
    other_nodes = {node: fact for node, fact in workload.nodes.items() if node != name}
    reports = {} if facts is None else {name: replace(workload.nodes[name], **facts)}
    for module in (previews, runs):
        monkeypatch.setattr(module, "workload_of", lambda *_: replace(workload, nodes={**other_nodes, **reports}))
    (row,) = (node for node in preview(pods)["nodes"] if node["name"] == name)
    assert (row["leaves"], row["why"]) == (False, previews.UNSEEN)


def _patch(pods: Pods, disruption: dict[str, Any], **fields: Any) -> None:
    current = pods.yard.now(POOL)
    changed = PoolPatch.model_validate({"disruption": disruption, **fields}).apply_to(current)
    change_pool(pods.yard.nodes.services, pods.yard.current(), current, current.version, changed, "user:a", "req")


def of_pool(pods: Pods, paused: bool) -> str:
    _patch(pods, {"paused": paused})
    return f"the disruption of pool {POOL} is paused"


def of_cluster(pods: Pods, paused: bool) -> str:
    pause_cluster(pods.yard.nodes.services, pods.yard.current(), paused=paused)
    return "the disruption of the cluster is paused"


def of_tenant(pods: Pods, paused: bool) -> str:
    assert pause_tenant(pods.yard.nodes.services, paused=paused)["paused"] is paused
    return "the disruption of all clusters is paused"


@pytest.mark.parametrize("switch", [of_pool, of_cluster, of_tenant])
def test_a_switch_keeps_every_node_until_it_is_set_back(pods: Pods, switch: Callable[[Pods, bool], str]) -> None:
    idle(pods, 3, expire_after="2h", disruption={**NOW, "consolidate_after": "1h"})
    why = switch(pods, True)
    pods.yard.nodes.clock.advance(3 * 3600)
    pods.run(10)
    assert pods.types() == [LARGE] * 3
    assert {node["why"] for node in preview(pods)["nodes"]} == {why}
    switch(pods, False)
    before = {claim.id for claim in pods.claims()}
    pods.run(40)
    assert not before & {claim.id for claim in pods.claims()}
    assert pods.types() == [LARGE]
    assert not pods.waiting


@pytest.mark.parametrize("switch", [of_pool, of_cluster, of_tenant])
def test_a_switch_ends_a_decision_whose_nodes_have_not_left(pods: Pods, switch: Callable[[Pods, bool], str]) -> None:
    any_type = [{"key": "vcluster.com/node-type", "operator": "Exists"}]
    pods.yard.dynamic_pool(POOL, disruption=NOW, requirements=any_type)
    pods.waiting = [pod("7500m")]
    pods.run(4)
    (old,) = pods.on
    pods.on[old] = [pod("1")]
    until(pods, REPLACING)
    why = switch(pods, True)
    pods.run(10)
    assert old in pods.on
    assert pods.record().state == IDLE
    assert reasons(pods)[-1] == "DisruptionAbandoned"
    assert why in pods.record().message


def test_a_cluster_without_pools_can_be_paused_before_it_has_any(pods: Pods) -> None:
    of_cluster(pods, True)
    pods.run(2)
    assert shown_view(pods)["paused"] is True
    idle(pods, 2)
    pods.run(8)
    assert pods.types() == [LARGE] * 2


def test_a_second_press_of_a_switch_changes_nothing(pods: Pods) -> None:
    idle(pods, 1)
    services, cluster = pods.yard.nodes.services, pods.yard.current()
    first = pause_cluster(services, cluster, paused=True)
    assert pause_cluster(services, cluster, paused=True).version == first.version
    assert pause_tenant(services, paused=True)["version"] == pause_tenant(services, paused=True)["version"] == 1


def test_what_is_saved_is_counted_by_pool_and_month(pods: Pods) -> None:
    idle(pods, 3)
    assert shown_view(pods)["usd_month_saved"] == 0
    pods.run(8)
    view = shown_view(pods)
    assert view["usd_month_saved"] == pytest.approx(0.6 * 730)
    assert view["savings"] == [{"pool": POOL, "usd_month": pytest.approx(0.6 * 730)}]
    pods.yard.nodes.clock.advance(40 * 24 * 3600)
    assert (shown_view(pods)["usd_month_saved"], shown_view(pods)["savings"]) == (0, [])


def test_the_price_of_what_comes_is_taken_off_what_is_saved(pods: Pods) -> None:
    any_type = [{"key": "vcluster.com/node-type", "operator": "Exists"}]
    pods.yard.dynamic_pool(POOL, disruption=NOW, requirements=any_type)
    pods.waiting = [pod("7500m")]
    pods.run(4)
    pods.on[next(iter(pods.on))] = [pod("1")]
    before = sum(claim.placement.usd_hour or 0 for claim in pods.claims() if claim.placement)
    pods.run(8)
    after = sum(claim.placement.usd_hour or 0 for claim in pods.claims() if claim.placement)
    assert pods.types() == [SMALL]
    assert shown_view(pods)["usd_month_saved"] == pytest.approx((before - after) * 730, abs=0.01)


def why(pods: Pods) -> dict[str, str]:
    return {item["name"]: item["why"] for item in preview(pods)["nodes"]}


def test_a_preview_shows_the_decision_that_is_carried_out(pods: Pods) -> None:
    small_only(pods)
    (old,) = pods.on
    until(pods, REPLACING)
    while len(pods.claims()) < 2:
        pods.yard.nodes.schedule()
        pods.yard.nodes.relay()
    pods.bind()
    answer = preview(pods)
    assert answer["message"].startswith("A decision is being carried out.")
    assert answer["decision"] is None
    leaves = {item["name"]: item["leaves"] for item in answer["nodes"]}
    assert leaves.pop(old) is True
    assert set(leaves.values()) == {False}
    (new,) = leaves
    assert why(pods)[new] == "it comes in the place of nodes that leave"


def test_nodes_that_a_static_pool_replaces_save_nothing(pods: Pods) -> None:
    pods.yard.pool("fixed", quantity=2)
    pods.run(4)
    drift(pods, pods.claims())
    answer = preview(pods)
    decision = answer["decision"]
    assert (decision["reason"], decision["usd_month_saved"]) == ("Drifted", 0)
    assert decision["usd_hour_before"] == decision["usd_hour_after"] > 0
    assert "their pools make others in their place" in answer["message"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"disruption": {"budgets": [{"nodes": "0", "reasons": ["Drifted"]}]}}, "Drifted: a budget of pool fixed"),
        ({"limits": {"nodes": "1"}}, "Drifted: the limits of pool fixed leave no room"),
    ],
)
def test_the_rule_that_keeps_a_drifted_node_is_named(pods: Pods, fields: dict[str, Any], words: str) -> None:
    pods.yard.pool("fixed", quantity=1, **fields)
    pods.run(4)
    (claim,) = pods.claims()
    drift(pods, [claim])
    assert why(pods)[claim.node_name].startswith(words)


def test_a_drifted_node_that_could_not_be_replaced_says_when_it_is_tried_again(pods: Pods) -> None:
    only_small = [{"key": "vcluster.com/node-type", "values": [SMALL]}]
    pods.yard.pool("fixed", quantity=1, requirements=only_small)
    pods.run(4)
    (claim,) = pods.claims()
    drift(pods, [claim])
    pods.last_picture = ""
    pods.yard.nodes.refused |= {("sim", "small", zone) for zone in ("*", "global")}
    pods.run(25)
    assert why(pods)[claim.node_name].startswith("Drifted: tried again at 2026-")


def test_a_minimum_saving_and_a_rest_are_named(pods: Pods) -> None:
    small_only(pods)
    until(pods, REPLACING)
    change(pods, minimum_saving=0.25)
    pods.run(4)
    (text,) = why(pods).values()
    assert text.startswith("no node leaves for its price before 2026-")
    assert shown_view(pods)["resting_until"] in text


def test_a_node_whose_replacement_failed_says_when_it_is_tried_again(pods: Pods) -> None:
    small_only(pods)
    pods.yard.nodes.refused |= {("sim", "small", zone) for zone in ("*", "global")}
    until(pods, REPLACING)
    pods.run(1)
    (text,) = why(pods).values()
    assert text.startswith("its last replacement did not come; it is tried again at 2026-")
    assert shown_view(pods)["resting_until"] is None


def test_a_node_that_is_repaired_is_in_the_message(pods: Pods) -> None:
    idle(pods, 1)
    pods.on[next(iter(pods.on))] = [pod("7500m")]
    (claim,) = pods.claims()
    pods.facts[claim.node_name] = {"ready": "False", "ready_since": pods.yard.nodes.services.now()}
    pods.yard.nodes.clock.advance(3600)
    answer = preview(pods)
    assert [item["leaves"] for item in answer["nodes"]] == [True]
    assert answer["message"] == "1 nodes leave, because they are not ready."


def test_what_could_be_saved_is_told_while_a_budget_is_closed(pods: Pods) -> None:
    idle(pods, 3, disruption=CLOSED)
    pods.run(2)
    assert shown_view(pods)["usd_month_possible"] > 300
