"""Commands on one node."""

from __future__ import annotations

from typing import Any

import pytest

from local.kube_api import Fault
from local.kube_store import Key
from tests.unit.agent.rig import Rig

READY = {"key": "stockyard.dev/unregistered", "effect": "NoExecute"}


def carry_out(rig: Rig, kind: str, **more: Any) -> dict[str, Any]:
    rig.platform.order(kind, kind, **more)
    rig.until_ended(rig.agent())
    return rig.platform.ended[f"cmd_{kind}"]


def test_cordon_and_uncordon_twice(rig: Rig) -> None:
    rig.add_node("a")
    for _ in range(2):
        assert carry_out(rig, "cordon", node="a")["status"] == "done"
        assert rig.node("a")["spec"] == {"unschedulable": True}
    for _ in range(2):
        assert carry_out(rig, "uncordon", node="a")["status"] == "done"
        assert rig.node("a")["spec"] == {}


@pytest.mark.parametrize("kind", ["cordon", "uncordon", "taint", "label"])
def test_a_node_that_is_not_there_fails_by_name(rig: Rig, kind: str) -> None:
    result = carry_out(rig, kind, node="a", taints=[READY], labels={"x": "y"})
    assert result["status"] == "failed"
    assert '"a" not found' in result["message"]


def test_taints_are_set_by_key_and_effect_and_taken_away_by_key(rig: Rig) -> None:
    kept = {"key": "gpu", "value": "a100", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
    prefers = {"key": "gpu", "effect": "PreferNoSchedule"}
    rig.add_node("a", taints=[kept, prefers, READY])
    wanted = [
        {"key": "gpu", "value": "a100", "effect": "NoSchedule"},
        {"key": "team", "value": "x", "effect": "NoSchedule"},
    ]
    for _ in range(2):
        result = carry_out(rig, "taint", node="a", taints=wanted, remove=[READY["key"]])
        assert result["status"] == "done"
        assert rig.node("a")["spec"]["taints"] == [kept, prefers, wanted[1]]
    carry_out(rig, "taint", node="a", taints=[{"key": "gpu", "value": "h100", "effect": "NoSchedule"}], remove=["gpu"])
    assert rig.node("a")["spec"]["taints"] == [
        {"key": "gpu", "effect": "NoSchedule", "value": "h100"}, wanted[1],
    ]  # fmt: skip


def test_taints_that_change_meanwhile_are_not_lost(rig: Rig) -> None:
    rig.add_node("a")
    interfered: list[int] = []

    def around(outgoing: Any, deliver: Any) -> Any:
        reply = deliver(outgoing)
        if outgoing.method == "GET" and outgoing.url.endswith("/nodes/a") and len(interfered) < 2:
            interfered.append(1)
            taints = [{"key": f"other-{n}", "effect": "NoSchedule"} for n in range(len(interfered))]
            rig.kube.store.replace(Key("", "nodes", "", "a"), {**rig.node("a"), "spec": {"taints": taints}})
        return reply

    rig.around = around
    assert carry_out(rig, "taint", node="a", taints=[READY])["status"] == "done"
    assert [one["key"] for one in rig.node("a")["spec"]["taints"]] == ["other-0", "other-1", READY["key"]]


def test_labels_are_set_and_taken_away(rig: Rig) -> None:
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
def test_arguments_that_do_not_fit_are_named(rig: Rig, kind: str, arguments: dict[str, Any], named: str) -> None:
    rig.add_node("a")
    result = carry_out(rig, kind, **{"node": "a", **arguments})
    assert result["status"] == "failed"
    assert result["message"].startswith(named)


def test_a_node_is_deleted_and_twice(rig: Rig) -> None:
    uid = rig.add_node("a")["metadata"]["uid"]
    assert carry_out(rig, "delete_node", node="a", uid=uid)["message"] == "The node a is deleted."
    assert carry_out(rig, "delete_node", node="a", uid=uid)["message"] == "There is no node a."
    rig.add_node("a")
    result = carry_out(rig, "delete_node", node="a", uid=uid)
    assert (result["status"], result["message"]) == ("done", "The node a is another machine's; it stays.")
    assert carry_out(rig, "delete_node", node="a", uid=None)["message"] == "The node a is deleted."


def test_a_conflict_is_no_proof_of_another_machine(rig: Rig) -> None:
    uid = rig.add_node("a")["metadata"]["uid"]
    rig.kube.faults.append(Fault("delete", "nodes", 409))
    rig.platform.order("d", "delete_node", node="a", uid=uid)
    agent = rig.agent()
    rig.rounds(agent, 1)
    assert rig.node("a")
    rig.until_ended(agent)
    assert rig.platform.ended["cmd_d"]["message"] == "The node a is deleted."


def test_a_node_that_goes_while_it_is_compared_is_done(rig: Rig) -> None:
    rig.add_node("a")
    rig.kube.faults.append(Fault("get", "nodes", 404))
    assert carry_out(rig, "delete_node", node="a", uid="uid-of-another")["status"] == "done"


def test_finalizers_keep_a_deletion_running(rig: Rig) -> None:
    made = rig.add_node("a")
    made["metadata"]["finalizers"] = ["example.test/volumes"]
    rig.platform.order("d", "delete_node", node="a", uid=made["metadata"]["uid"])
    agent = rig.agent()
    rig.rounds(agent, 3)
    assert rig.platform.results["d"]["status"] == "running"
    assert "example.test/volumes" in rig.platform.results["d"]["message"]
    del rig.kube.store.objects[Key("", "nodes", "", "a")]
    rig.until_ended(agent)
    assert rig.platform.ended["cmd_d"]["status"] == "done"
