"""How commands are kept: order, repeats, results, passing failures, time."""

from __future__ import annotations

from datetime import timedelta

from agent.stockyard_agent.desk import HANDLERS
from agent.stockyard_agent.observation import timestamp
from local.kube_api import Fault
from tests.unit.agent.rig import Rig


def test_a_result_is_posted_until_the_command_is_no_longer_sent(rig: Rig) -> None:
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


def test_an_unknown_kind_fails_with_what_is_known(rig: Rig) -> None:
    rig.platform.order("x", "reboot", node="a")
    rig.until_ended(rig.agent())
    result = rig.platform.ended["cmd_x"]
    assert result["status"] == "failed"
    assert "'reboot'" in result["message"]
    assert all(kind in result["message"] for kind in HANDLERS)


def test_what_is_no_command_is_left_and_a_bad_deadline_is_named(rig: Rig) -> None:
    rig.add_node("a")
    rig.platform.commands.update(x="text", y={"id": 7, "kind": "cordon"}, z={"id": "cmd_z"})  # type: ignore[call-overload]
    rig.platform.order("bad", "cordon", node="a")
    rig.platform.commands["cmd_bad"]["deadline"] = "soon"
    rig.platform.order("c", "cordon", node="a")
    rig.rounds(rig.agent(), 2)
    assert rig.platform.ended["cmd_bad"]["message"].startswith("/deadline: ")
    assert rig.platform.ended["cmd_c"]["status"] == "done"
    assert any("3 commands have no id" in line for line in rig.logs)


def test_commands_are_carried_out_in_their_order(rig: Rig) -> None:
    rig.add_node("a")
    for number, kind in enumerate(("cordon", "uncordon", "cordon", "uncordon", "cordon")):
        rig.platform.order(str(number), kind, node="a")
    rig.rounds(rig.agent(), 2)
    assert len(rig.platform.ended) == 5
    assert rig.node("a")["spec"] == {"unschedulable": True}


def test_a_later_command_does_not_overtake_one_of_its_node_that_failed_for_now(rig: Rig) -> None:
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
    assert rig.platform.ended["cmd_2"]["status"] == "done"
    rig.until_ended(agent)
    assert rig.node("a")["spec"] == {}


def test_a_silent_api_ends_the_work_of_a_round_at_once(rig: Rig) -> None:
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
    assert {result["status"] for result in rig.platform.ended.values()} == {"done"}


def test_drains_share_the_time_of_a_round(rig: Rig) -> None:
    names = [f"n{number}" for number in range(6)]
    for name in names:
        rig.add_node(name)
        rig.add_pod(f"pod-{name}", name, labels={"held": "yes"} if name in ("n0", "n1") else None)
        rig.platform.order(name, "drain", node=name, grace_seconds=None)
    budget = rig.add_budget("held", {"held": "yes"}, 2)
    rig.platform.order("quick", "label", node="n5", labels={"x": "y"})

    def around(outgoing: object, deliver: object) -> object:
        if "fieldSelector=spec.nodeName%3Dn" in outgoing.url:  # type: ignore[attr-defined]
            rig.clock.later(6)
        return deliver(outgoing)  # type: ignore[operator]

    rig.around = around  # type: ignore[assignment]
    agent = rig.agent()
    rig.rounds(agent, 2)
    assert rig.platform.ended["cmd_quick"]["status"] == "done", "what is quick does not wait for drains"
    changes = [call.action.name for call in rig.kube.calls if call.action.verb == "patch"]
    assert changes[:2] == ["n5", "n0"], "the label came first"
    waiting = [name for name, result in rig.platform.results.items() if "its turn" in result["message"]]
    assert waiting == ["n2", "n3", "n4", "n5"]
    rig.rounds(agent, 8)
    assert set(rig.platform.commands) == {"cmd_n0", "cmd_n1"}, "those that are held let the others pass"
    rig.kube.store.get(budget)["spec"]["minAvailable"] = 0
    rig.until_ended(agent)


def test_a_command_whose_deadline_passed_is_not_carried_out(rig: Rig) -> None:
    rig.add_node("a")
    rig.kube.faults.append(Fault("patch", "nodes", 500, times=99))
    deadline = timestamp(rig.clock.now + timedelta(seconds=40))
    rig.platform.order("c", "cordon", node="a", deadline=deadline)
    agent = rig.agent()
    rig.rounds(agent, 2)
    assert rig.platform.results["c"]["status"] == "running"
    rig.until_ended(agent)
    assert rig.platform.ended["cmd_c"]["message"] == "Its deadline passed before it could be carried out."


def test_an_object_of_an_unforeseen_shape_fails_its_command_only(rig: Rig) -> None:
    rig.add_node("a")["spec"] = {"taints": [{"unknown": "shape"}]}
    rig.platform.order("t", "taint", node="a", taints=[{"key": "x", "effect": "NoSchedule"}])
    agent = rig.agent()
    observed = agent.round()
    assert observed > 0
    assert any("KeyError" in line for line in rig.logs), "such a node cannot be observed either"
    rig.node("a")["spec"] = {}
    rig.until_ended(agent)
    assert rig.platform.ended["cmd_t"]["status"] == "done"


def test_a_broken_object_between_observation_and_command(rig: Rig) -> None:
    rig.add_node("a")
    rig.platform.order("t", "taint", node="a", taints=[{"key": "x", "effect": "NoSchedule"}])

    def around(outgoing: object, deliver: object) -> object:
        broken = outgoing.url.endswith("/nodes/a")  # type: ignore[attr-defined]
        rig.node("a")["spec"] = {"taints": [{"unknown": "shape"}]} if broken else {}
        return deliver(outgoing)  # type: ignore[operator]

    rig.around = around  # type: ignore[assignment]
    rig.until_ended(rig.agent())
    assert rig.platform.ended["cmd_t"]["message"] == "It could not be carried out: KeyError."


def test_a_token_file_that_is_away_for_a_moment_is_a_silent_api(rig: Rig) -> None:
    rig.add_node("a")
    rig.platform.order("c", "cordon", node="a")
    away = [True]

    def around(outgoing: object, deliver: object) -> object:
        if outgoing.method == "PATCH" and away:  # type: ignore[attr-defined]
            away.clear()
            raise FileNotFoundError("token")
        return deliver(outgoing)  # type: ignore[operator]

    rig.around = around  # type: ignore[assignment]
    agent = rig.agent()
    rig.rounds(agent, 1)
    rig.until_ended(agent)
    assert rig.platform.ended["cmd_c"]["status"] == "done"
