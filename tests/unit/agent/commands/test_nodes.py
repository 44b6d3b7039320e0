"""Commands on one node."""

from __future__ import annotations

from typing import Any

import pytest

from local.kubernetes.api import Fault
from local.kubernetes.store import Key
from tests.unit.agent.rig import Rig

READY = {"key": "stockyard.dev/unregistered", "effect": "NoExecute"}


def carry_out(rig: Rig, kind: str, **more: Any) -> dict[str, Any]:
    rig.platform.order(kind, kind, **more)
    rig.until_ended(rig.agent())
    return rig.platform.results_by_id[f"cmd_{kind}"]


def test_cordon_and_uncordon_are_idempotent(rig: Rig) -> None:
    rig.add_node("a")
    for _ in range(2):
        assert carry_out(rig, "cordon", node="a")["status"] == "done"
        assert rig.node("a")["spec"] == {"unschedulable": True}
    for _ in range(2):
        assert carry_out(rig, "uncordon", node="a")["status"] == "done"
        assert rig.node("a")["spec"] == {}


@pytest.mark.parametrize("kind", ["cordon", "uncordon", "taint", "label"])
def test_command_for_missing_node_fails_with_its_name(rig: Rig, kind: str) -> None:
    result = carry_out(rig, kind, node="a", taints=[READY], labels={"x": "y"})
    assert result["status"] == "failed"
    assert '"a" not found' in result["message"]


def test_taint_sets_by_key_and_effect_and_removes_by_key(rig: Rig) -> None:
    gpu = {"key": "gpu", "value": "a100", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
    prefers = {"key": "gpu", "effect": "PreferNoSchedule"}
    rig.add_node("a", taints=[gpu, prefers, READY])
    desired = [
        {"key": "gpu", "value": "a100", "effect": "NoSchedule"},
        {"key": "team", "value": "x", "effect": "NoSchedule"},
    ]
    for _ in range(2):
        result = carry_out(rig, "taint", node="a", taints=desired, remove=[READY["key"]])
        assert result["status"] == "done"
        assert rig.node("a")["spec"]["taints"] == [gpu, prefers, desired[1]]
    carry_out(rig, "taint", node="a", taints=[{"key": "gpu", "value": "h100", "effect": "NoSchedule"}], remove=["gpu"])
    assert rig.node("a")["spec"]["taints"] == [
        {"key": "gpu", "effect": "NoSchedule", "value": "h100"}, desired[1],
    ]  # fmt: skip


def test_taint_keeps_concurrent_changes(rig: Rig) -> None:
    rig.add_node("a")
    interfered: list[int] = []

    def around(request: Any, deliver: Any) -> Any:
        response = deliver(request)
        if request.method == "GET" and request.url.endswith("/nodes/a") and len(interfered) < 2:
            interfered.append(1)
            taints = [{"key": f"other-{n}", "effect": "NoSchedule"} for n in range(len(interfered))]
            rig.kube.store.replace(Key("", "nodes", "", "a"), {**rig.node("a"), "spec": {"taints": taints}})
        return response

    rig.around = around
    assert carry_out(rig, "taint", node="a", taints=[READY])["status"] == "done"
    assert [taint["key"] for taint in rig.node("a")["spec"]["taints"]] == ["other-0", "other-1", READY["key"]]


def test_label_sets_and_removes_labels(rig: Rig) -> None:
    rig.add_node("a")
    result = carry_out(rig, "label", node="a", labels={"stockyard.dev/claim": "ncl_1", "kubernetes.io/os": None})
    assert result["status"] == "done"
    assert rig.node("a")["metadata"]["labels"] == {"kubernetes.io/hostname": "a", "stockyard.dev/claim": "ncl_1"}


@pytest.mark.parametrize(
    ("kind", "arguments", "named"),
    [
        ("label", {"labels": ["x"]}, "/labels: "),
        ("label", {"labels": {"a/b": "not a label!"}}, "/labels/a~1b: "),
        ("label", {"labels": {"": "x"}}, "/labels/: "),
        ("taint", {"taints": [{"key": "x", "effect": "Sometimes"}]}, "/taints/0: "),
        ("taint", {"taints": [READY, {"key": "x", "value": 1, "effect": "NoSchedule"}]}, "/taints/1: "),
        ("taint", {"taints": "x"}, "/taints: "),
        ("taint", {"remove": "x"}, "/remove: "),
        ("cordon", {"node": "../pods"}, "/node: "),
        ("drain", {"grace_seconds": -1}, "/grace_seconds: "),
        ("drain", {"grace_seconds": True}, "/grace_seconds: "),
        ("delete_node", {"uid": 7}, "/uid: "),
    ],
)
def test_invalid_arguments_are_named(rig: Rig, kind: str, arguments: dict[str, Any], named: str) -> None:
    rig.add_node("a")
    result = carry_out(rig, kind, **{"node": "a", **arguments})
    assert result["status"] == "failed"
    assert result["message"].startswith(named)


def test_delete_node_is_idempotent(rig: Rig) -> None:
    uid = rig.add_node("a")["metadata"]["uid"]
    assert carry_out(rig, "delete_node", node="a", uid=uid)["message"] == "The node a is deleted."
    assert carry_out(rig, "delete_node", node="a", uid=uid)["message"] == "There is no node a."
    rig.add_node("a")
    result = carry_out(rig, "delete_node", node="a", uid=uid)
    assert (result["status"], result["message"]) == ("done", "The node a is another machine's; it stays.")
    assert carry_out(rig, "delete_node", node="a", uid=None)["message"] == "The node a is deleted."


def test_delete_node_conflict_alone_does_not_mean_another_machine(rig: Rig) -> None:
    uid = rig.add_node("a")["metadata"]["uid"]
    rig.kube.faults.append(Fault("delete", "nodes", 409))
    rig.platform.order("d", "delete_node", node="a", uid=uid)
    agent = rig.agent()
    rig.rounds(agent, 1)
    assert rig.node("a")
    rig.until_ended(agent)
    assert rig.platform.results_by_id["cmd_d"]["message"] == "The node a is deleted."


def test_delete_node_is_done_when_node_disappears(rig: Rig) -> None:
    rig.add_node("a")
    rig.kube.faults.append(Fault("get", "nodes", 404))
    assert carry_out(rig, "delete_node", node="a", uid="uid-of-another")["status"] == "done"


def test_delete_node_runs_until_finalizers_are_gone(rig: Rig) -> None:
    node_object = rig.add_node("a")
    node_object["metadata"]["finalizers"] = ["example.test/volumes"]
    rig.platform.order("d", "delete_node", node="a", uid=node_object["metadata"]["uid"])
    agent = rig.agent()
    rig.rounds(agent, 3)
    assert rig.platform.results["d"]["status"] == "running"
    assert "example.test/volumes" in rig.platform.results["d"]["message"]
    del rig.kube.store.objects[Key("", "nodes", "", "a")]
    rig.until_ended(agent)
    assert rig.platform.results_by_id["cmd_d"]["status"] == "done"
