"""Changes of nodes are told within ten seconds, also while nobody waits, and a heartbeat is no news."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from agent.stockyard_agent import pod_reports
from agent.stockyard_agent.cluster import nodes
from agent.stockyard_agent.cluster.pod_templates import node_keys
from agent.stockyard_agent.kubernetes import Object
from local.kubernetes.api import Fault
from local.kubernetes.store import Key
from tests.unit.agent.rig import Rig

READY = {"type": "Ready", "status": "True"}
TAINT = {"key": "a", "value": "b", "effect": "NoSchedule"}


def changed(rig: Rig, name: str, change: Callable[[Object], object]) -> None:
    key = Key("", "nodes", "", name)
    document = copy.deepcopy(rig.kube.store.get(key))
    change(document)
    rig.kube.store.replace(key, document)


def ready(status: str) -> Callable[[Object], object]:
    return lambda node: node["status"].update(conditions=[{**READY, "status": status}])


def beats(number: int) -> Callable[[Object], object]:
    """A heartbeat of the kubelet, with the images that the node has now."""
    condition, images = {**READY, "lastHeartbeatTime": str(number)}, [{"names": [f"image-{number}"]}]
    return lambda node: node["status"].update(conditions=[condition], images=images)


def at_step(number: int) -> Callable[[Object], object]:
    return lambda node: node["metadata"]["labels"].update(step=str(number))


CHANGES: dict[str, tuple[Callable[[Object], object], Callable[[Any], bool]]] = {
    "cordon": (lambda node: node["spec"].update(unschedulable=True), lambda facts: facts["unschedulable"]),
    "taint": (lambda node: node["spec"].update(taints=[TAINT]), lambda facts: facts["taints"] == [TAINT]),
    "label": (lambda node: node["metadata"]["labels"].update(a="b"), lambda facts: facts["labels"].get("a") == "b"),
    "smaller": (
        lambda node: node["status"].update(allocatable={"cpu": "1"}),
        lambda facts: facts["allocatable"] == {"cpu": "1"},
    ),
    "lost": (ready("Unknown"), lambda facts: facts["ready"] == "Unknown"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_a_node_is_told_within_ten_seconds_while_nobody_waits(rig: Rig, name: str) -> None:
    change, is_told = CHANGES[name]
    rig.platform.pods.interval = 300
    for node in "ab":
        rig.add_node(node)
    reports = rig.reports()
    rig.steps(reports, 40)
    assert len(rig.platform.pods.posts) == 1
    changed(rig, "a", change)
    rig.steps(reports, 9)
    nodes = rig.platform.pods.pod_state["nodes"]
    assert [is_told(nodes[node]) for node in "ab"] == [True, False]
    assert rig.platform.pods.posts[1]["nodes"].keys() == {"a"}
    rig.steps(reports, 40)
    assert len(rig.platform.pods.posts) == 2


def test_the_agent_comes_at_once_when_a_machine_says_that_it_ends(rig: Rig) -> None:
    """At each announcement once, and not because a machine watches for one."""
    called: list[str] = []
    rig.add_node("a")
    reports = rig.reports(waiting=lambda: called.append("soon"))
    rig.steps(reports, 10)
    for value, count in (("watched", 0), ("announced", 1), ("announced", 1)):
        changed(rig, "a", lambda node, value=value: node["metadata"]["labels"].update({nodes.INTERRUPTION: value}))
        rig.steps(reports, 6)
        assert len(called) == count, value


def test_nodes_that_come_go_and_are_ready_again_are_told_within_ten_seconds(rig: Rig) -> None:
    rig.add_node("a")
    changed(rig, "a", ready("False"))
    reports = rig.reports()
    rig.steps(reports, 20)
    changed(rig, "a", ready("True"))
    rig.steps(reports, 9)
    assert rig.platform.pods.pod_state["nodes"]["a"]["ready"] == "True"
    rig.add_node("b")
    rig.steps(reports, 9)
    assert rig.platform.pods.pod_state["nodes"].keys() == {"a", "b"}
    rig.kube.store.remove(Key("", "nodes", "", "a"), {})
    rig.steps(reports, 9)
    assert rig.platform.pods.pod_state["nodes"].keys() == {"b"}
    assert len(rig.platform.pods.posts) == 4


def test_heartbeats_and_images_are_no_news(rig: Rig) -> None:
    rig.add_node("a")
    reports = rig.reports()
    rig.steps(reports, 2)
    for number in range(30):
        changed(rig, "a", beats(number))
        rig.steps(reports)
    assert len(rig.platform.pods.posts) == 1


def test_a_node_that_joins_makes_few_reports(rig: Rig) -> None:
    reports = rig.reports()
    rig.steps(reports)
    rig.add_node("a")
    for number in range(20):
        changed(rig, "a", at_step(number))
        rig.steps(reports)
    assert len(rig.platform.pods.posts) <= 1 + 20 // 4


def test_a_node_that_is_closed_while_pods_wait_makes_the_loop_come_soon(rig: Rig) -> None:
    """Stockyard may make a node, whose token the agent has to make."""
    calls: list[int] = []
    rig.add_node("a")
    rig.add_waiting("web-1")
    reports = rig.reports(waiting=lambda: calls.append(len(rig.platform.pods.posts)))
    rig.steps(reports, 20)
    changed(rig, "a", lambda node: node["spec"].update(unschedulable=True))
    rig.steps(reports, 9)
    assert calls == [1, 2]


def test_nodes_that_may_not_be_watched_are_listed(rig: Rig) -> None:
    """The agent was upgraded under the roles of an older one."""
    role = next(role for key, role in rig.kube.store.objects.items() if key.resource == "clusterroles")
    for rule in role["rules"]:
        if rule["resources"] == ["nodes"]:
            rule["verbs"].remove("watch")
    rig.add_node("a")
    reports = rig.reports()
    rig.steps(reports, 30)
    changed(rig, "a", lambda node: node["spec"].update(unschedulable=True))
    rig.steps(reports, 20)
    assert rig.platform.pods.pod_state["nodes"]["a"]["unschedulable"]
    assert len([line for line in rig.logs if "listed instead" in line]) == 1
    lists = sum(call.action.verb == "list" and call.action.resource == "nodes" for call in rig.kube.calls)
    assert lists <= 2 + 50 // nodes.BLIND_SECONDS


@pytest.mark.parametrize("status", [410, 503])
def test_nodes_are_known_again_after_a_watch_that_failed(rig: Rig, status: int) -> None:
    rig.add_node("a")
    reports = rig.reports()
    rig.steps(reports, 2)
    if status == 410:
        rig.kube.store.compact()
    else:
        rig.kube.faults.append(Fault("watch", "nodes", status, times=6))
    changed(rig, "a", lambda node: node["spec"].update(unschedulable=True))
    rig.steps(reports, 12)
    assert rig.platform.pods.pod_state["nodes"]["a"]["unschedulable"]


def test_labels_that_no_rule_names_are_left_out_where_a_report_has_no_room(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone, long = "topology.kubernetes.io/zone", {f"example.test/{number}": "x" * 60 for number in range(20)}
    for node in "abcdefgh":
        rig.add_node(node)
        changed(rig, node, lambda document: document["metadata"]["labels"].update({zone: "a", "disk": "ssd", **long}))
    rig.add_waiting("web", nodeSelector={"disk": "ssd"})
    monkeypatch.setattr(pod_reports, "LIMIT", 8_000)
    reports = rig.reports()
    rig.steps(reports, 2)
    for facts in rig.platform.pods.pod_state["nodes"].values():
        assert facts["labels"].items() >= {zone: "a", "disk": "ssd"}.items()
        assert facts["labels"].keys().isdisjoint(long)
    rig.add_waiting("other", nodeSelector={"example.test/1": "x"})
    rig.steps(reports, 3)
    assert "example.test/1" in rig.platform.pods.pod_state["nodes"]["a"]["labels"]
    rig.steps(reports, 60)
    assert len([line for line in rig.logs if "left out" in line]) == 1
    assert len(rig.platform.pods.posts) == 2, "what is left out is no change"


@pytest.mark.parametrize(
    "rules",
    [
        {"nodeSelector": {"disk": "ssd"}},
        {"topologySpreadConstraints": [{"topologyKey": "disk"}]},
        {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "disk"}]}}},
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]
                    }
                }
            }
        },
    ],
)
def test_labels_of_nodes_that_rules_name(rules: dict[str, Any]) -> None:
    assert node_keys({"spec": {**rules, "containers": [{}]}}) == {"disk"}
    assert node_keys({"spec": {}, "volumes": [[{"key": "disk", "operator": "In", "values": []}]]}) == {"disk"}
