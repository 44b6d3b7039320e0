"""Pods are planned on the pools of a cluster, or on all providers of the tenant; nothing is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from stockyard.domain.models.pools.placements import PlacementsView
from stockyard.domain.pools.workload_records import NodeFacts
from stockyard.domain.records import NodeClaim
from stockyard.errors import InvalidInput
from stockyard.operations.fleet.pools import placements
from stockyard.operations.fleet.pools.placements import plan_placements
from stockyard.operations.fleet.state import Workload
from stockyard.operations.listing import every
from stockyard.scheduling.packing.workloads import read_workloads
from tests.unit.operations.fleet.pools.conftest import Yard

MIB = 2**20


def deployment(name: str = "web", replicas: int = 3, cpu: str = "900m", **spec: Any) -> dict[str, Any]:
    container = {"name": "a", "resources": {"requests": {"cpu": cpu, "memory": "512Mi"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}
    metadata = {"name": name, "namespace": "shop"}
    return {"kind": "Deployment", "metadata": metadata, "spec": {"replicas": replicas, "template": template}}


def plan(yard: Yard, *manifests: dict[str, Any], everywhere: bool = False, **options: Any) -> dict[str, Any]:
    cluster = None if everywhere else yard.current()
    before = len(list(every(yard.nodes.services.store, NodeClaim)))
    document = plan_placements(yard.nodes.services, cluster, manifests, **options)
    PlacementsView.model_validate(document)
    assert len(list(every(yard.nodes.services.store, NodeClaim))) == before, "nothing is made"
    return document


def types(document: dict[str, Any]) -> Counter[str]:
    return Counter(node["type"] for node in document["nodes"])


def details(document: dict[str, Any]) -> Sequence[str]:
    return [remark["detail"] for remark in document["warnings"]]


def test_a_pod_that_asks_for_a_label_that_its_vendor_does_not_know_hears_which_was_meant(yard: Yard) -> None:
    yard.dynamic_pool("burst")
    selector = {"karpenter.k8s.aws/instance-categroy": "m"}
    ((reason,),) = (entry["reasons"] for entry in plan(yard, deployment(nodeSelector=selector))["left_out"])
    assert reason["subject"] == "karpenter.k8s.aws/instance-categroy"
    assert "did you mean karpenter.k8s.aws/instance-category?" in reason["message"]


def test_pods_are_planned_on_dynamic_pools_with_price_bound_and_gap(yard: Yard) -> None:
    yard.dynamic_pool("burst")
    document = plan(yard, deployment(replicas=10))
    assert types(document) == {"sim.large": 1, "sim.small": 1}
    assert document["usd_hour"] == pytest.approx(0.4)
    assert document["bound"] <= document["usd_hour"]
    assert document["gap"] == pytest.approx(document["usd_hour"] / document["bound"] - 1, abs=1e-5)
    assert sorted(name for node in document["nodes"] for name in node["pods"]) == sorted(
        f"shop/web-{number}" for number in range(10)
    )
    first = document["nodes"][0]
    assert (first["pool"], first["provider"], first["capacity_type"]) == ("burst", "sim", "on-demand")
    assert (document["cluster_id"], document["pods"], document["left_out"]) == (yard.cluster.id, 10, [])


def test_pods_without_room_say_which_pool_refused_them_by_which_rule(yard: Yard) -> None:
    yard.dynamic_pool("limited", limits={"nodes": 1})
    yard.dynamic_pool("tainted", taints=[{"key": "team", "effect": "NoSchedule"}])
    document = plan(yard, deployment(replicas=2, cpu="7"), deployment("huge", 1, cpu="99"))
    assert types(document) == {"sim.large": 1}
    by_pods = {
        item["pods"][0]: {reason["pool"]: (reason["rule"], reason["subject"]) for reason in item["reasons"]}
        for item in document["left_out"]
    }
    taint = ("Taint", "team")
    assert by_pods["shop/huge-0"] == {"limited": ("Resource", "cpu"), "tainted": taint}
    (other,) = [reasons for name, reasons in by_pods.items() if name.startswith("shop/web")]
    assert other == {"limited": ("Limit", "nodes"), "tainted": taint}
    assert (document["bound"], document["gap"]) == (None, None)


def test_without_a_cluster_every_provider_serves(yard: Yard) -> None:
    document = plan(yard, deployment(), everywhere=True)
    assert (document["cluster_id"], types(document)) == (None, {"sim.small": 2})
    assert {node["pool"] for node in document["nodes"]} == {"*"}


def test_a_small_plan_is_whole_though_its_time_is_over_when_it_begins(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        yard.dynamic_pool(f"pool-{number}")
    pods = [deployment(f"web-{number}", 16, cpu) for number, cpu in enumerate(("900m", "1500m", "250m"))]
    in_time = plan(yard, *pods)
    monkeypatch.setattr(placements, "DEADLINE_SECONDS", 0)
    late = plan(yard, *pods)
    assert (late["pods"], late["left_out"], late["complete"], late["warnings"]) == (48, [], True, [])
    assert late == in_time


def test_a_plan_that_used_up_its_steps_says_so_first(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.dynamic_pool("burst")
    monkeypatch.setattr(placements, "STEPS", 40)
    monkeypatch.setattr(placements, "STEPS_A_POD", 0)
    document = plan(yard, deployment(replicas=48), {"kind": "Service", "metadata": {"name": "web"}})
    (item,) = document["left_out"]
    assert 0 < item["count"] < 48
    assert not document["complete"]
    first, second = details(document)
    assert first.startswith(f"The plan is not whole: {item['count']} pods had no turn")
    assert second.startswith("Skipped 1")


def test_a_cluster_without_dynamic_pools_says_so(yard: Yard) -> None:
    document = plan(yard, deployment())
    assert document["left_out"] == [{"count": 3, "pods": ["shop/web-0", "shop/web-1", "shop/web-2"], "reasons": []}]
    assert any("has no dynamic pool" in detail for detail in details(document))


def test_room_on_nodes_that_are_there_comes_first(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.pool("fixed", quantity=1)
    yard.dynamic_pool("burst", limits={"nodes": 5})
    yard.settle()
    (claim,) = yard.claims("fixed")
    assert types(plan(yard, deployment(replicas=2))) == {"sim.small": 1}
    assert any("what runs on its nodes" in detail for detail in details(plan(yard, deployment())))
    ((_, running),) = read_workloads([deployment("old", 1, "500m")], 9, 9).pods
    ((_, agent),) = read_workloads([deployment("agent", 1, "300m")], 9, 9).pods
    report = Workload((), {claim.node_name: ((running, 1),)}, {"kube-system/agent": agent}, {}, "", 1)
    monkeypatch.setattr(placements, "workload_of", lambda *_: report)
    document = plan(yard, deployment(replicas=2))
    # Of two cores the running pod and the agent leave room for one of the pods.
    assert [(node["node"], len(node["pods"])) for node in document["existing"]] == [(claim.node_name, 1)]
    assert (types(document), document["warnings"]) == ({"sim.small": 1}, [])
    assert plan(yard, deployment(replicas=1))["nodes"] == []


def test_no_pod_goes_to_a_node_that_the_agent_does_not_tell_of(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.pool("fixed", quantity=2)
    yard.dynamic_pool("burst", limits={"nodes": 5})
    yard.settle()
    reported, unreported = sorted(claim.node_name for claim in yard.claims("fixed"))
    facts = NodeFacts("True", None, "", False, False, None, (), 0, {}, 0)
    # The report is older than both nodes are: by itself it does not say that one is gone.
    report = Workload((), {}, {}, {}, yard.nodes.services.now(), 1, nodes={reported: facts})
    monkeypatch.setattr(placements, "workload_of", lambda *_: report)
    pods = deployment(replicas=4)
    at_first = {node["node"]: (node["ready"], len(node["pods"])) for node in plan(yard, pods)["existing"]}
    assert at_first == {reported: (True, 2), unreported: (False, 2)}
    yard.nodes.clock.advance(30)
    later = plan(yard, pods)
    assert [(node["node"], node["ready"], len(node["pods"])) for node in later["existing"]] == [(reported, True, 2)]
    assert types(later) == {"sim.small": 1}
    assert details(later) == [f"No pod is planned onto {unreported}: the cluster's agent does not tell of it."]


def test_daemon_sets_take_room_on_each_node(yard: Yard) -> None:
    yard.dynamic_pool("burst")
    agent = {**deployment("agent", cpu="500m"), "kind": "DaemonSet"}
    assert types(plan(yard, deployment(replicas=2))) == {"sim.small": 1}
    assert types(plan(yard, deployment(replicas=2), agent)) == {"sim.small": 2}


def test_preferences_are_kept_or_not_as_asked(yard: Yard) -> None:
    yard.dynamic_pool("burst")
    term = {"matchExpressions": [{"key": "vcluster.com/node-type", "operator": "In", "values": ["sim.large"]}]}
    prefers = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
    document = deployment(replicas=1, affinity={"nodeAffinity": prefers})
    assert types(plan(yard, document)) == {"sim.large": 1}
    assert types(plan(yard, document, preferences=False)) == {"sim.small": 1}


def test_nodes_of_unknown_price_leave_no_sum(yard: Yard) -> None:
    yard.nodes.provider("lab", {"name": "box", "resources": {"cpu": "16", "memory": "64Gi"}})
    document = plan(yard, deployment(replicas=1, cpu="12"), everywhere=True)
    assert [(node["type"], node["usd_hour"]) for node in document["nodes"]] == [("lab.box", None)]
    assert (document["usd_hour"], document["bound"], document["gap"]) == (None, None, None)
    assert any("no known price" in detail for detail in details(document))


def test_many_equal_pods_without_room_are_counted_and_some_named(yard: Yard) -> None:
    document = plan(yard, deployment(replicas=50, cpu="99"), everywhere=True)
    (item,) = document["left_out"]
    assert (item["count"], len(item["pods"])) == (50, placements.MOST_NAMES)


@pytest.mark.parametrize(
    ("manifests", "pointer"),
    [
        ([deployment(), {**deployment(), "spec": {"replicas": "2"}}], "/manifests/1/spec/template"),
        ([deployment(nodeSelector={"a": 7})], "/manifests/0/spec/template/spec/nodeSelector/a"),
        ([deployment(replicas=10**9)], "/manifests/0"),
        ([{"kind": 7}], "/manifests/0/kind"),
    ],
)
def test_faults_are_named_by_their_pointer_in_the_request(
    yard: Yard, manifests: list[dict[str, Any]], pointer: str
) -> None:
    with pytest.raises(InvalidInput) as fault:
        plan_placements(yard.nodes.services, None, manifests)
    assert [problem.pointer for problem in fault.value.errors] == [pointer]


def test_labels_that_multiply_the_ways_to_make_a_node_are_refused(yard: Yard) -> None:
    """Eight open labels of ten values each: a hundred million ways, and the memory for none of them."""
    keys = [f"example.com/k{number}" for number in range(8)]
    values = ",".join(f"v{number}" for number in range(10))
    wide = {"name": "wide", "resources": {"cpu": "2", "memory": "4Gi"}, "properties": dict.fromkeys(keys, values)}
    yard.nodes.provider("lab", wide)
    harmless = plan(yard, deployment(nodeSelector={keys[0]: "v1"}), everywhere=True)
    assert types(harmless) == {"lab.wide": 2}
    with pytest.raises(InvalidInput, match="ways to make a node"):
        plan(yard, deployment(nodeSelector=dict.fromkeys(keys, "v1")), everywhere=True)
