"""Traces are read, with the place of each fault, and replayed on pools of the trace or of a cluster."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.simulations import SimulationRequest, SimulationView
from stockyard.errors import InvalidInput
from stockyard.operations.fleet.pools import simulations
from stockyard.operations.fleet.pools.simulations import simulate
from tests.unit.operations.fleet.pools.conftest import PROXY, Agent, Yard, template
from tests.unit.operations.fleet.pools.test_placements import deployment

EXAMPLE = Path("examples/trace.yaml")
TYPES = [
    {"name": "small", "resources": {"cpu": 2, "memory": "8Gi"}, "usdPerHour": 0.1},
    {"name": "large", "resources": {"cpu": 8, "memory": "32Gi"}, "usdPerHour": 0.36},
]


def trace(*events: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    return {"until": "10h", "nodeTypes": TYPES, "events": list(events), **fields}


def arrive(at: str = "0s", *manifests: Mapping[str, Any]) -> dict[str, Any]:
    return {"at": at, "arrive": list(manifests or (deployment(),))}


def depart(at: str, name: str = "web", **fields: Any) -> dict[str, Any]:
    return {"at": at, "depart": [{"name": name, "namespace": "shop", **fields}]}


def answer(yard: Yard, document: Mapping[str, Any], *, of_cluster: bool = False) -> dict[str, Any]:
    view = simulate(yard.nodes.services, yard.current() if of_cluster else None, read(SimulationRequest, document))
    SimulationView.model_validate(view)
    return view


def test_money_nodes_and_evictions_of_a_trace(yard: Yard) -> None:
    document = trace(arrive("0s", deployment(replicas=8)), depart("1h", count=7))
    view = answer(yard, document)
    # The small node is asked for two minutes after the hour; the large one stays until a look has seen that it is
    # ready, and for the minute of its drain.
    assert view["usd"] == pytest.approx(0.36 * (1 + 300 / 3600) + 0.1 * (9 - 120 / 3600), abs=1e-6)
    (decision,) = view["decisions"]
    assert (decision["reason"], decision["at"], decision["evictions"]) == (
        "Underutilized",
        "2026-01-05T01:04:00.000Z",
        1,
    )
    assert (view["complete"], view["ended_at"], view["hours"]) == (True, "2026-01-05T10:00:00.000Z", 10)
    assert (view["pods"], view["nodes"], view["peak_nodes"], view["evictions"]) == (8, 2, 2, 1)
    assert view["waits"] == {"count": 8, "longest_seconds": 90, "mean_seconds": 90.0}
    never = answer(yard, document | {"policy": {"consolidationPolicy": "None"}})
    assert (never["usd"], never["decision_count"]) == (pytest.approx(3.6), 0)
    slow = answer(yard, document | {"startUp": "10m", "drain": "0s"})
    assert slow["usd"] == pytest.approx(0.36 * (1 + 720 / 3600) + 0.1 * (9 - 120 / 3600), abs=1e-6)


def test_a_policy_changes_what_it_names_and_leaves_the_rest_to_the_pools(yard: Yard) -> None:
    pools = [{"name": "burst", "disruption": {"consolidateAfter": "2h", "consolidationPolicy": "WhenEmpty"}}]
    document = trace(arrive("0s", deployment(replicas=8)), depart("1h", count=7), pools=pools)
    assert answer(yard, document)["decisions"] == []
    full = answer(yard, document | {"policy": {"consolidationPolicy": "WhenEmptyOrUnderutilized"}})
    assert [decision["at"] for decision in full["decisions"]] == ["2026-01-05T03:03:00.000Z"]
    for policy in ({"consolidateAfter": "Never"}, {"minimumSaving": 0.3}, {"budgets": [{"nodes": "0"}]}):
        overriding = {"consolidationPolicy": "WhenEmptyOrUnderutilized", **policy}
        assert answer(yard, document | {"policy": overriding})["decisions"] == []


def test_nodes_of_a_paused_pool_stay_and_the_answer_says_so(yard: Yard) -> None:
    pools = [{"name": "burst", "disruption": {"consolidateAfter": "0s", "paused": True}}]
    document = trace(arrive("0s", deployment(replicas=8)), depart("1h"), pools=pools)
    paused = answer(yard, document | {"policy": {"consolidateAfter": "1m"}})
    assert (paused["decisions"], paused["usd"]) == ([], pytest.approx(3.6))
    (remark,) = paused["warnings"]
    assert "pool burst is paused" in remark["detail"]
    # Whoever names a policy asks what it would save.
    named = answer(yard, document | {"policy": {"consolidationPolicy": "WhenEmpty"}})
    assert [decision["reason"] for decision in named["decisions"]] == ["Empty"]
    assert named["warnings"] == []


def test_nodes_of_a_paused_pool_stay_silently_where_nothing_is_consolidated(yard: Yard) -> None:
    pools = [{"name": "burst", "disruption": {"paused": True}}]
    view = answer(yard, trace(arrive(), pools=pools, policy={"consolidationPolicy": "None"}))
    assert (view["decisions"], view["warnings"]) == ([], [])


def test_pods_that_are_not_to_be_disrupted_stay(yard: Yard) -> None:
    manifest = deployment(replicas=8)
    manifest["spec"]["template"]["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    assert answer(yard, trace(arrive("0s", manifest), depart("1h", count=7)))["evictions"] == 0


def test_the_example_costs_less_the_more_may_be_consolidated(yard: Yard) -> None:
    document = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    policies = {policy.pop("name"): policy for policy in document.pop("policies")}
    views = {name: answer(yard, document | {"policy": policy}) for name, policy in policies.items()}
    assert all(view["complete"] and not view["without_place"] and not view["warnings"] for view in views.values())
    cost = {name: view["usd"] for name, view in views.items()}
    assert cost["full"] <= cost["balanced"] <= cost["empty"] < cost["never"]
    assert cost["full"] < cost["at-night"] < cost["never"]
    # By day in Berlin nothing moves, which is an hour behind UTC's count.
    hours = {int(decision["at"][11:13]) for decision in views["at-night"]["decisions"]}
    assert hours
    assert not hours & set(range(6, 19))
    random.Random(1).shuffle(document["events"])
    assert answer(yard, document | {"policy": policies["full"]}) == views["full"]


def test_pools_of_a_cluster_serve_with_their_limits(yard: Yard) -> None:
    yard.dynamic_pool("burst", limits={"nodes": 1}, headroom={"cpu": "1"})
    yard.pool("fixed", quantity=1)
    document = {"until": "2h", "events": [arrive("0s", deployment(replicas=2, cpu="7"))]}
    view = answer(yard, document, of_cluster=True)
    assert (view["nodes"], view["usd"]) == (1, pytest.approx(2 * 0.3))
    assert [(item["name"], item["count"]) for item in view["without_place"]] == [("shop/web", 1)]
    assert sorted(remark["detail"] for remark in view["warnings"]) == [
        "Floor and headroom of pool burst are not replayed.",
        "Pool fixed is static: its nodes are not replayed.",
    ]
    everywhere = answer(yard, document)
    assert everywhere["nodes"] == 2


def test_daemon_sets_of_a_cluster_count_as_they_really_are(yard: Yard, agent: Agent) -> None:
    """The cluster's own DaemonSet takes more than one of two cores of the small type."""
    yard.dynamic_pool("burst")
    document = {"until": "2h", "events": [arrive("0s", deployment(replicas=1, cpu="1"))]}
    assert answer(yard, document, of_cluster=True)["usd"] == pytest.approx(2 * 0.1)
    own = {PROXY: template("1200m", daemon_set="kube-system/proxy")}
    agent.post(groups=own, daemon_sets={"kube-system/proxy": PROXY}, nodes={}, budgets={})
    assert answer(yard, document, of_cluster=True)["usd"] == pytest.approx(2 * 0.3)
    # What the trace says of the same DaemonSet comes first.
    smaller = {**deployment("proxy", cpu="100m"), "kind": "DaemonSet"}
    smaller["metadata"]["namespace"] = "kube-system"
    assert answer(yard, {**document, "daemonSets": [smaller]}, of_cluster=True)["usd"] == pytest.approx(2 * 0.1)


def test_a_cluster_without_dynamic_pools_is_refused(yard: Yard) -> None:
    with pytest.raises(InvalidInput) as refusal:
        answer(yard, {"until": "2h", "events": [arrive()]}, of_cluster=True)
    assert [problem.pointer for problem in refusal.value.errors] == ["/cluster"]


def test_where_the_work_of_a_request_is_used_up_the_answer_says_when(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulations, "STEPS", 101_000)
    events = [arrive(f"{hour}h", deployment(f"app-{hour}", 3)) for hour in range(9)]
    view = answer(yard, trace(*events))
    assert not view["complete"]
    assert view["ended_at"] < "2026-01-05T10"
    assert view["ended_at"] in view["warnings"][0]["detail"]


def test_documents_that_make_no_pods_are_counted_and_lists_taken_apart(yard: Yard) -> None:
    foreign = {"apiVersion": "batch.example.com/v1", "kind": "Job", "metadata": {"name": "mpi"}}
    agents = {"kind": "DaemonSetList", "items": [{**deployment("agent", cpu="100m"), "kind": "DaemonSet"}]}
    view = answer(yard, trace(arrive("0s", foreign, {"kind": "List", "items": [deployment()]}), daemonSets=[agents]))
    assert view["pods"] == answer(yard, trace(arrive("0s", deployment())))["pods"]
    text = "Skipped 1: Job of batch.example.com/v1 is another kind than that of batch/v1."
    assert text in [warning["detail"] for warning in view["warnings"]]


BAD: Mapping[str, tuple[dict[str, Any], str]] = {
    "more go than there are": (trace(arrive(), depart("1h", count=4)), "/events/1/depart/0"),
    "nobody is there": (trace(depart("1h"), arrive("1h")), "/events/0/depart/0"),
    "a moment after the end": (trace(arrive("11h")), "/events/0/at"),
    "a moment before the begin": (trace(arrive("2026-01-04T00:00:00Z")), "/events/0/at"),
    "no moment": (trace(arrive("soon")), "/events/0/at"),
    "a moment that never comes": (trace(arrive("Never")), "/events/0/at"),
    "a moment without a zone": (trace(arrive("2026-01-05T01:00:00")), "/events/0/at"),
    "too long": (trace(arrive(), until="745h"), "/until"),
    "a slow start": (trace(arrive(), startUp="2h"), "/startUp"),
    "a daemon set that comes": (trace(arrive("0s", {**deployment(), "kind": "DaemonSet"})), "/events/0/arrive/0/kind"),
    "nothing that makes pods": (trace(arrive("0s", {"kind": "Service"})), "/events/0/arrive/0"),
    "a quantity": (
        trace(arrive("0s", deployment(cpu="many"))),
        "/events/0/arrive/0/spec/template/spec/containers/0/resources/requests/cpu",
    ),
    "too many pods": (trace(arrive("0s", deployment(replicas=10_001))), "/events/0/arrive/0"),
    "a list of nothing": (trace(arrive("0s", {"kind": "List"})), "/events/0/arrive/0/items"),
    "an item that is none": (trace(arrive("0s", {"kind": "List", "items": [7]})), "/events/0/arrive/0/items/0"),
    "no daemon set": (trace(arrive(), daemonSets=[deployment()]), "/daemonSets/0/kind"),
    "a type without memory": (
        trace(arrive(), nodeTypes=[{"name": "a", "resources": {"cpu": 1}, "usdPerHour": 1}]),
        "/nodeTypes/0",
    ),
    "a name twice": (trace(arrive(), pools=[{"name": "a"}, {"name": "a"}]), "/pools/1/name"),
    "two sources of pools": (trace(arrive(), cluster="demo"), "/nodeTypes"),
    "an unknown policy": (trace(arrive(), policy={"consolidationPolicy": "Often"}), "/policy/consolidationPolicy"),
    "a budget's zone": (
        trace(
            arrive(),
            policy={"budgets": [{"nodes": "1", "schedule": "@daily", "duration": "1h", "timeZone": "Yard/Here"}]},
        ),
        "/policy/budgets/0/timeZone",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_faults_are_told_with_their_pointer(yard: Yard, case: str) -> None:
    document, pointer = BAD[case]
    with pytest.raises(InvalidInput) as refusal:
        answer(yard, document)
    assert pointer in [problem.pointer for problem in refusal.value.errors], refusal.value.errors
