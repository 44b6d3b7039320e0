"""Reports of a cluster's agent about nodes are kept and read back, and nodes that are no more ready wake a pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from stockyard.domain.pools.workload_records import NodeFacts, ProtectedPod
from stockyard.errors import InvalidInput
from stockyard.operations.machines import pending_pods
from stockyard.operations.machines.pending_pods import UNREADY_TYPE
from tests.harness.sent import waiting
from tests.unit.operations.fleet.pools.conftest import WEB, Agent, picture, template

NODE = {"ready": "True", "created_at": "2026-01-01T00:00:00Z"}


def facts(ready: str = "True", **more: Any) -> dict[str, Any]:
    return {"ready": ready, "created_at": "2026-01-01T00:00:00Z", **more}


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        (facts(), facts("Unknown"), 1),
        (facts(), None, 1),
        (facts(), facts(), 0),
        (facts("False"), facts("Unknown"), 0),
        (facts("Unknown"), None, 1),
        (facts(unschedulable=True), None, 0),
        (facts(unschedulable=True, taints=[]), None, 1),
        (facts(unschedulable=True, taints=[{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]), None, 0),
        (facts(unschedulable=True), facts("Unknown", unschedulable=True), 1),
    ],
)
def test_nodes_that_are_ready_no_more_wake_who_looks_at_their_machines(
    agent: Agent, before: Any, after: Any, count: int
) -> None:
    """One that the agent has drained may go."""
    schema = json.loads((Path(__file__).parents[5] / "docs/events/UnreadyNodes.json").read_text(encoding="utf-8"))
    agent.post(nodes={"a": before, "b": facts()}, budgets={})
    agent.change(nodes={"a": after}, budgets={})
    agent.change(nodes={"a": after}, budgets={})
    items = waiting(agent.services.store, "event")
    details = [item["detail"] for item in items if item["detail_type"] == UNREADY_TYPE]
    assert [detail["nodes"] for detail in details] == [1] * count
    for detail in details:
        jsonschema.validate(detail, schema)
        assert detail["subject"] == agent.yard.cluster.id


def test_a_node_that_somebody_has_deleted_wakes_a_pass_while_nobody_waits(agent: Agent) -> None:
    # The first report wakes one as well: before it nobody knew whether headroom has its nodes.
    assert agent.post(nodes={"a": facts(), "b": facts()}, budgets={}).woken
    assert not agent.change(nodes={"a": facts(unschedulable=True)}, budgets={}).woken
    assert not agent.change(nodes={"a": facts("Unknown")}, budgets={}).woken
    assert agent.change(nodes={"a": None}, budgets={}).woken
    assert [wake["pods"] for wake in agent.wakes()] == [0, 0]
    assert not agent.change(nodes={}, budgets={}).woken


TAINT = {"key": "a", "value": "b", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    "change",
    [
        {"unschedulable": True}, {"taints": [TAINT]}, {"labels": {"a": "b"}}, {"allocatable": {"cpu": "1"}},
        {"ready": "False"}, {"uid": "2"}, {"volume_limits": {"ebs.csi.aws.com": 25}}, None,
    ],
)  # fmt: skip
def test_another_node_wakes_a_pass_for_pods_that_wait(agent: Agent, change: Any) -> None:
    """And costs none where nobody waits."""
    node = facts(uid="1", labels={}, taints=[], allocatable={"cpu": "2"})
    agent.post(groups={WEB: template()}, pending={WEB: {"count": 1}}, nodes={"a": node}, budgets={})
    assert not agent.change(nodes={"a": node}, budgets={}).woken
    other = None if change is None else {**node, **change}
    assert agent.change(nodes={"a": other}, budgets={}).woken
    assert agent.change(nodes={"b": node}, budgets={}).woken
    assert agent.change(pending={WEB: None}, nodes={}, budgets={}).woken
    assert agent.change(nodes={"a": node}, budgets={}).woken is False
    assert agent.change(nodes={"a": other}, budgets={}).woken is (change is None)


def test_what_says_only_whether_a_node_may_go_wakes_nobody(agent: Agent) -> None:
    agent.post(groups={WEB: template()}, pending={WEB: {"count": 1}}, nodes={"a": facts()}, budgets={})
    event = "2026-01-02T00:00:00Z"
    for more in ({"do_not_disrupt": True}, {"pod_event_at": event}, {"doubly_guarded": 1}, {"ready_since": event}):
        assert not agent.change(nodes={"a": facts(**more)}, budgets={}).woken


def test_an_agent_that_tells_of_no_nodes_loses_none(agent: Agent) -> None:
    agent.post(nodes={"a": facts()}, budgets={})
    agent.post(nodes=None, budgets=None)
    assert UNREADY_TYPE not in {item["detail_type"] for item in waiting(agent.services.store, "event")}


def test_facts_of_nodes_are_read_back(agent: Agent) -> None:
    pod = {"name": "web/job", "value": "30m", "started_at": "2026-01-01T00:01:00Z"}
    facts = {
        **NODE, "ready_since": "2026-01-01T00:00:30Z", "pod_event_at": "2026-01-01T00:02:00Z", "do_not_disrupt": True,
        "unschedulable": True, "protected": {"count": 4, "pods": [pod]}, "budgets": {"web/db": 2}, "doubly_guarded": 1,
    }  # fmt: skip
    agent.post(nodes={"n1": facts, "n2": NODE}, budgets={"web/db": 1})
    workload = picture(agent)
    assert workload.nodes is not None
    assert workload.nodes["n1"] == NodeFacts(
        "True", "2026-01-01T00:00:30.000Z", "2026-01-01T00:00:00.000Z", True, True, "2026-01-01T00:02:00.000Z",
        (ProtectedPod("web/job", "30m", "2026-01-01T00:01:00.000Z"),), 4, {"web/db": 2}, 1,
    )  # fmt: skip
    assert workload.nodes["n2"] == NodeFacts("True", None, "2026-01-01T00:00:00.000Z", False, False, None, (), 0, {}, 0)
    assert workload.budgets == {"web/db": 1}


def test_nothing_told_is_not_no_nodes(agent: Agent) -> None:
    """An older agent does not know what may be disrupted, and one that may not read budgets neither."""
    agent.post()
    assert picture(agent).nodes is None
    agent.change(nodes={}, budgets={})
    assert picture(agent).nodes == {}
    agent.change(nodes={"n1": NODE, "n2": NODE}, budgets={})
    agent.change(nodes={"n2": None}, budgets={})
    assert picture(agent).nodes.keys() == {"n1"}
    agent.change()
    assert picture(agent).nodes is None
    agent.change(nodes={"n3": NODE}, budgets={})
    assert picture(agent).nodes.keys() == {"n3"}


def test_pictures_of_an_earlier_release_are_read(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_pods, "FACTS", ())
    monkeypatch.setattr(pending_pods, "_remembering", lambda picture, _: picture)
    monkeypatch.setattr(pending_pods, "_check", lambda _: None)
    agent.post(groups={WEB: {**template()}}, pending={WEB: {"count": 1}})
    monkeypatch.undo()
    assert (picture(agent).nodes, agent.pending()) == (None, {WEB: 1})
    assert not agent.change(nodes={"n1": NODE}, budgets={}).resync
    assert picture(agent).nodes.keys() == {"n1"}


def test_an_event_of_a_pod_is_not_forgotten_with_the_agent_that_saw_it(agent: Agent) -> None:
    def told_event(event: str | None, created: str = NODE["created_at"]) -> str | None:
        agent.post(nodes={"n1": {**NODE, "created_at": created, "pod_event_at": event}}, budgets={})
        moment: str | None = picture(agent).nodes["n1"].pod_event_at
        return moment

    assert told_event(None) is None
    assert told_event("2026-01-01T00:05:00Z") == "2026-01-01T00:05:00.000Z"
    assert told_event("2026-01-01T00:02:00Z") == "2026-01-01T00:05:00.000Z"
    assert told_event(None) == "2026-01-01T00:05:00.000Z"
    assert told_event("2026-01-01T00:06:00Z") == "2026-01-01T00:06:00.000Z"
    assert told_event(None, created="2026-01-02T00:00:00Z") is None, "another machine of that name"


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"nodes": {"a/b": {**NODE, "budgets": {"web/db": 1}}}, "budgets": {}}, "/nodes/a~1b/budgets"),
        ({"nodes": {f"n{number}": NODE for number in range(5_001)}, "budgets": {}}, "/nodes"),
        ({"nodes": {"n1": {**NODE, "ready": "Perhaps"}}}, "/nodes/n1/ready"),
        ({"nodes": {"n1": {**NODE, "created_at": "2026-13-01T00:00:00Z"}}}, "/nodes/n1/created_at"),
        ({"nodes": {"n1": {**NODE, "protected": {"count": 1, "pods": []}}}}, "/nodes/n1/protected/pods"),
        ({"nodes": {}, "budgets": {"web/db": -1}}, "/budgets/web~1db"),
    ],
)
def test_facts_that_do_not_hold_together_are_refused(agent: Agent, fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        agent.post(**fields)
    assert [problem.pointer for problem in refusal.value.errors] == [pointer]


def test_pods_on_a_node_that_nobody_has_told_of_wake_a_pass_once(agent: Agent) -> None:
    """The Node object may have come and gone between two reports."""
    groups = {WEB: template()}
    agent.post(groups=groups, nodes={"a": facts()}, budgets={}, running={"a": {WEB: 1}})
    assert agent.change(running={"b": {WEB: 1}}, nodes={}, budgets={}).woken
    assert not agent.change(running={"b": {WEB: 2}}, nodes={}, budgets={}).woken
    assert not agent.change(running={"c": {WEB: 1}}, nodes={"c": facts()}, budgets={}).woken
