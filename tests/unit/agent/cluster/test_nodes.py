"""What changes of nodes is told within ten seconds, also while nobody waits, and a heartbeat is no news."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from agent.stockyard_agent.cluster import nodes
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


CHANGES: dict[str, tuple[Callable[[Object], object], Callable[[Any], bool]]] = {
    "cordon": (lambda node: node["spec"].update(unschedulable=True), lambda told: told["unschedulable"]),
    "taint": (lambda node: node["spec"].update(taints=[TAINT]), lambda told: told["taints"] == [TAINT]),
    "label": (lambda node: node["metadata"]["labels"].update(a="b"), lambda told: told["labels"].get("a") == "b"),
    "smaller": (
        lambda node: node["status"].update(allocatable={"cpu": "1"}), lambda told: told["allocatable"] == {"cpu": "1"},
    ),
    "lost": (ready("Unknown"), lambda told: told["ready"] == "Unknown"),
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
    told = rig.platform.pods.picture["nodes"]
    assert [is_told(told[node]) for node in "ab"] == [True, False]
    assert rig.platform.pods.posts[1]["nodes"].keys() == {"a"}
    rig.steps(reports, 40)
    assert len(rig.platform.pods.posts) == 2


def test_nodes_that_come_go_and_are_ready_again_are_told_within_ten_seconds(rig: Rig) -> None:
    rig.add_node("a")
    changed(rig, "a", ready("False"))
    reports = rig.reports()
    rig.steps(reports, 20)
    changed(rig, "a", ready("True"))
    rig.steps(reports, 9)
    assert rig.platform.pods.picture["nodes"]["a"]["ready"] == "True"
    rig.add_node("b")
    rig.steps(reports, 9)
    assert rig.platform.pods.picture["nodes"].keys() == {"a", "b"}
    rig.kube.store.remove(Key("", "nodes", "", "a"), {})
    rig.steps(reports, 9)
    assert rig.platform.pods.picture["nodes"].keys() == {"b"}
    assert len(rig.platform.pods.posts) == 4


def test_heartbeats_and_images_are_no_news(rig: Rig) -> None:
    rig.add_node("a")
    reports = rig.reports()
    rig.steps(reports, 2)
    for number in range(30):
        beat = {**READY, "lastHeartbeatTime": str(number)}
        images = [{"names": [f"image-{number}"]}]
        changed(
            rig, "a", lambda node, beat=beat, images=images: node["status"].update(conditions=[beat], images=images)
        )
        rig.steps(reports)
    assert len(rig.platform.pods.posts) == 1


def test_a_node_that_joins_makes_few_reports(rig: Rig) -> None:
    reports = rig.reports()
    rig.steps(reports)
    rig.add_node("a")
    for number in range(20):
        changed(rig, "a", lambda node, number=number: node["metadata"]["labels"].update(step=str(number)))
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
    """By an agent that was upgraded under the roles of an older one."""
    role = next(role for key, role in rig.kube.store.objects.items() if key.resource == "clusterroles")
    for rule in role["rules"]:
        if rule["resources"] == ["nodes"]:
            rule["verbs"].remove("watch")
    rig.add_node("a")
    reports = rig.reports()
    rig.steps(reports, 30)
    changed(rig, "a", lambda node: node["spec"].update(unschedulable=True))
    rig.steps(reports, 20)
    assert rig.platform.pods.picture["nodes"]["a"]["unschedulable"]
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
    assert rig.platform.pods.picture["nodes"]["a"]["unschedulable"]
