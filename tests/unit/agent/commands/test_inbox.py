"""Inbox of commands: order, repeats, results, passing failures, time."""

from __future__ import annotations

from datetime import timedelta

from agent.stockyard_agent.commands.inbox import HANDLERS
from agent.stockyard_agent.observation import timestamp
from local.kubernetes.api import Fault
from tests.unit.agent.rig import Rig


def test_inbox_posts_result_until_command_is_no_longer_sent(rig: Rig) -> None:
    rig.add_node("a")
    rig.platform.forgets = False
    rig.platform.order("c", "cordon", node="a")
    agent = rig.agent()
    rig.rounds(agent, 4)
    assert [len(post["results"]) for post in rig.platform.posts] == [0, 1, 1, 1]
    assert len([call for call in rig.kube.calls if call.action.verb == "patch"]) == 1, "what is done is not repeated"
    rig.platform.commands.clear()
    rig.rounds(agent, 2)
    assert rig.platform.posts[-1]["results"] == []


def test_inbox_fails_unknown_kind_and_lists_known_kinds(rig: Rig) -> None:
    rig.platform.order("x", "reboot", node="a")
    rig.until_ended(rig.agent())
    result = rig.platform.results_by_id["cmd_x"]
    assert result["status"] == "failed"
    assert "'reboot'" in result["message"]
    assert all(kind in result["message"] for kind in HANDLERS)


def test_inbox_ignores_malformed_commands_and_names_bad_deadline(rig: Rig) -> None:
    rig.add_node("a")
    rig.platform.commands.update(x="text", y={"id": 7, "kind": "cordon"}, z={"id": "cmd_z"})  # type: ignore[call-overload]
    rig.platform.order("bad", "cordon", node="a")
    rig.platform.commands["cmd_bad"]["deadline"] = "soon"
    rig.platform.order("c", "cordon", node="a")
    rig.rounds(rig.agent(), 2)
    assert rig.platform.results_by_id["cmd_bad"]["message"].startswith("/deadline: ")
    assert rig.platform.results_by_id["cmd_c"]["status"] == "done"
    assert any("3 commands have no id" in line for line in rig.logs)


def test_inbox_executes_commands_in_order(rig: Rig) -> None:
    rig.add_node("a")
    for number, kind in enumerate(("cordon", "uncordon", "cordon", "uncordon", "cordon")):
        rig.platform.order(str(number), kind, node="a")
    rig.rounds(rig.agent(), 2)
    assert len(rig.platform.results_by_id) == 5
    assert rig.node("a")["spec"] == {"unschedulable": True}


def test_command_waits_for_earlier_failed_command_of_same_node(rig: Rig) -> None:
    for name in ("a", "b"):
        rig.add_node(name)
    rig.kube.faults.append(Fault("patch", "nodes", 503))
    for number, (kind, node) in enumerate([("cordon", "a"), ("uncordon", "a"), ("cordon", "b")]):
        rig.platform.order(str(number), kind, node=node)
    agent = rig.agent()
    rig.rounds(agent, 2)
    assert rig.platform.results["0"]["status"] == "running"
    assert "503" in rig.platform.results["0"]["message"]
    assert rig.platform.results["1"]["message"] == "Waits for an earlier command of its node."
    assert rig.platform.results_by_id["cmd_2"]["status"] == "done"
    rig.until_ended(agent)
    assert rig.node("a")["spec"] == {}


def test_unreachable_api_ends_round_at_once(rig: Rig) -> None:
    for number in range(5):
        rig.add_node(f"n{number}")
        rig.platform.order(str(number), "cordon", node=f"n{number}")
    rig.kube.faults.append(Fault("patch", "nodes", reset="before", times=99))
    agent = rig.agent()
    rig.rounds(agent, 2)
    assert len([call for call in rig.kube.calls if call.action.verb == "patch"]) == 2, "one try a round"
    assert {result["status"] for result in rig.platform.results.values()} == {"running"}
    rig.kube.faults.clear()
    rig.until_ended(agent)
    assert {result["status"] for result in rig.platform.results_by_id.values()} == {"done"}


def test_drains_share_time_of_a_round(rig: Rig) -> None:
    names = [f"n{number}" for number in range(6)]
    for name in names:
        rig.add_node(name)
        rig.add_pod(f"pod-{name}", name, labels={"held": "yes"} if name in ("n0", "n1") else None)
        rig.platform.order(name, "drain", node=name, grace_seconds=None)
    budget = rig.add_budget("held", {"held": "yes"}, 2)
    rig.platform.order("quick", "label", node="n5", labels={"x": "y"})

    def around(request: object, deliver: object) -> object:
        if "fieldSelector=spec.nodeName%3Dn" in request.url:  # type: ignore[attr-defined]
            rig.clock.later(6)
        return deliver(request)

    rig.around = around
    agent = rig.agent()
    rig.rounds(agent, 2)
    assert rig.platform.results_by_id["cmd_quick"]["status"] == "done", "what is quick does not wait for drains"
    changes = [call.action.name for call in rig.kube.calls if call.action.verb == "patch"]
    assert changes[:2] == ["n5", "n0"], "the label came first"
    waiting = [name for name, result in rig.platform.results.items() if "its turn" in result["message"]]
    assert waiting == ["n2", "n3", "n4", "n5"]
    rig.rounds(agent, 8)
    assert set(rig.platform.commands) == {"cmd_n0", "cmd_n1"}, "those that are held let the others pass"
    rig.kube.store.get(budget)["spec"]["minAvailable"] = 0
    rig.until_ended(agent)


def test_command_past_its_deadline_fails(rig: Rig) -> None:
    rig.add_node("a")
    rig.kube.faults.append(Fault("patch", "nodes", 500, times=99))
    deadline = timestamp(rig.clock.now + timedelta(seconds=40))
    rig.platform.order("c", "cordon", node="a", deadline=deadline)
    agent = rig.agent()
    rig.rounds(agent, 2)
    assert rig.platform.results["c"]["status"] == "running"
    rig.until_ended(agent)
    assert rig.platform.results_by_id["cmd_c"]["message"] == "Its deadline passed before it could be carried out."


def test_malformed_node_fails_only_its_command(rig: Rig) -> None:
    rig.add_node("a")["spec"] = {"taints": [{"unknown": "shape"}]}
    rig.platform.order("t", "taint", node="a", taints=[{"key": "x", "effect": "NoSchedule"}])
    agent = rig.agent()
    observed = agent.round()
    assert observed > 0
    assert any("KeyError" in line for line in rig.logs), "such a node cannot be observed either"
    rig.node("a")["spec"] = {}
    rig.until_ended(agent)
    assert rig.platform.results_by_id["cmd_t"]["status"] == "done"


def test_command_fails_when_node_is_malformed_after_observation(rig: Rig) -> None:
    rig.add_node("a")
    rig.platform.order("t", "taint", node="a", taints=[{"key": "x", "effect": "NoSchedule"}])

    def around(request: object, deliver: object) -> object:
        broken = request.url.endswith("/nodes/a")  # type: ignore[attr-defined]
        rig.node("a")["spec"] = {"taints": [{"unknown": "shape"}]} if broken else {}
        return deliver(request)

    rig.around = around
    rig.until_ended(rig.agent())
    assert rig.platform.results_by_id["cmd_t"]["message"] == "It could not be carried out: KeyError."


def test_missing_token_file_is_treated_as_unreachable_api(rig: Rig) -> None:
    rig.add_node("a")
    rig.platform.order("c", "cordon", node="a")
    away = [True]

    def around(request: object, deliver: object) -> object:
        if request.method == "PATCH" and away:  # type: ignore[attr-defined]
            away.clear()
            raise FileNotFoundError("token")
        return deliver(request)

    rig.around = around
    agent = rig.agent()
    rig.rounds(agent, 1)
    rig.until_ended(agent)
    assert rig.platform.results_by_id["cmd_c"]["status"] == "done"
