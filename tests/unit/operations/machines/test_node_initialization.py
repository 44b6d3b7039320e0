"""A joined node is available when its startup taints are removed and it has the labels of its claim."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from local.kubernetes.api import node
from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.observations import ObservedNode
from stockyard.domain.records import NodeClaim, Placement
from stockyard.lifecycle.nodes.node_commands import LABEL, command_id, commands_of, done_fact, seen_of, waits_for
from stockyard.operations.machines.join import JoinConfiguration
from stockyard.operations.machines.observe import facts_of
from tests.unit.operations.conftest import World
from tests.unit.operations.machines.test_join import Yard
from tests.unit.operations.nodes import Nodes

DRIVER = {"key": "driver", "value": "missing", "effect": "NoSchedule"}
OWN = {"key": "own", "value": "", "effect": "NoSchedule"}
RESERVED = "node-restriction.kubernetes.io/tier"


class Kubelet(Yard):
    """A machine that joins with its taints and with the labels within the kubelet's rights."""

    def node(self, configuration: JoinConfiguration) -> dict[str, Any]:
        joined = node(
            configuration.node_name, claim=configuration.labels["stockyard.dev/claim"], taints=configuration.taints
        )
        allowed = {key: value for key, value in configuration.labels.items() if not key.startswith("node-restriction.")}
        joined["metadata"]["labels"] |= allowed
        return joined


@pytest.fixture
def yard(world: World) -> Yard:
    yard = Kubelet.of(world)
    small = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "properties": {"tier": "gold,silver"}}
    yard.nodes.provider("lab", small, block={"cloudAccount": 1})
    return yard


def started(yard: Yard, **fields: Any) -> tuple[NodeClaim, dict[str, Any]]:
    claim = yard.nodes.claim("worker", cluster_ref="demo", **fields)
    yard.nodes.schedule()
    bound = yard.nodes.now(claim)
    payload = {"tenant": "acme", "claim_id": claim.id, "operation_id": bound.operation_id, "attempt": bound.attempt}
    return claim, payload


def untaint(yard: Yard, key: str) -> None:
    """Remove a startup taint, as its owner does."""
    spec = yard.rig.node("worker")["spec"]
    spec["taints"] = [taint for taint in spec["taints"] if taint["key"] != key]


def message(nodes: Nodes, claim: NodeClaim) -> str:
    phases = {phase.name: phase for phase in nodes.operation(nodes.now(claim)).phases}
    return phases["initialize"].message


def test_node_is_available_after_startup_taints_are_removed(yard: Yard) -> None:
    nodes = yard.nodes
    claim, payload = started(yard, taints=(OWN,), startup_taints=(DRIVER, {"key": "net", "effect": "NoExecute"}))
    assert nodes.run("provision_node", payload, most=60).startswith("still at initialize")
    assert nodes.now(claim).phase == "Pending"
    assert message(nodes, claim) == "Waiting for node worker to lose its startup taints driver, net."
    assert {taint["key"] for taint in yard.rig.node("worker")["spec"]["taints"]} == {"own", "driver", "net"}
    untaint(yard, "net")
    assert nodes.run("provision_node", payload, most=20).startswith("still at initialize")
    assert message(nodes, claim) == "Waiting for node worker to lose its startup taints driver."
    untaint(yard, "driver")
    assert nodes.run("provision_node", payload) == "available"
    assert [taint["key"] for taint in yard.rig.node("worker")["spec"]["taints"]] == ["own"]


def test_resolved_properties_become_labels_including_restricted_ones(yard: Yard) -> None:
    nodes = yard.nodes
    silver = {"key": "tier", "operator": "In", "values": ["silver"]}
    claim, payload = started(yard, requirements=(silver,), properties={RESERVED: "secure"})
    assert nodes.run("provision_node", payload) == "available"
    labels = yard.rig.node("worker")["metadata"]["labels"]
    assert labels["tier"] == "silver"
    assert labels[RESERVED] == "secure"
    assert labels["vcluster.com/node-type"] == "lab.small"
    assert set(nodes.now(claim).node_labels.items()) <= set(labels.items())
    assert done_fact(nodes.now(claim), LABEL) in facts_of(nodes.services, claim)


def test_complete_labels_need_no_command(yard: Yard) -> None:
    claim, payload = started(yard)
    assert yard.nodes.run("provision_node", payload) == "available"
    assert done_fact(yard.nodes.now(claim), LABEL) not in facts_of(yard.nodes.services, claim)


# --- the pure part ----------------------------------------------------------------------------------------------------

NODE_REPORT = {"name": "worker", "uid": "u", "ready": "True", "taints": [], "labels": {}}


def waiting(**fields: Any) -> NodeClaim:
    placed = Placement("npr_1", "lab.small", "on-demand", ("a",), 1, "t")
    defaults = {"placement": placed, "machine_id": "m", "node_labels": {"a": "b", "c": "d"}}
    return NodeClaim("ncl_1", "worker", "t", "t", **{**defaults, **fields})


def test_startup_taints_differ_by_key_and_effect() -> None:
    claim = waiting(startup_taints=(DRIVER,))

    def starting(**taint: str) -> Any:
        return seen_of(claim, {**NODE_REPORT, "taints": [{**DRIVER, **taint}]})["starting"]

    assert starting() == starting(value="other") == ["driver"]
    assert starting(key="x") == starting(effect="NoExecute") == []


def test_label_command_is_sent_until_labels_are_set_or_command_is_done(yard: Yard) -> None:
    claim, now = waiting(), yard.nodes.clock.now()
    lacking = seen_of(claim, {**NODE_REPORT, "labels": {"a": "b", "c": "x"}})
    (command,) = commands_of(claim, {}, lacking, "token", now, None)
    assert (command.kind, command.id) == ("label", command_id(claim, LABEL))
    assert command.arguments == {"node": "worker", "labels": {"c": "d"}}
    assert waits_for(claim, {}, lacking) == "to get its labels c"
    done = {done_fact(claim, LABEL): "t"}
    assert commands_of(claim, done, lacking, "token", now, None) == []
    assert waits_for(claim, done, lacking) is None
    complete = seen_of(claim, {**NODE_REPORT, "labels": claim.node_labels})
    assert commands_of(claim, {}, complete, "token", now, None) == []
    assert waits_for(claim, {}, complete) is None
    assert waits_for(claim, {}, {**complete, "ready": "Unknown"}) == "to be ready"
    assert commands_of(waiting(phase="Available"), {}, lacking, "token", now, None) == []


def test_node_fact_of_older_release_is_readable() -> None:
    stored = json.loads('{"name": "worker", "uid": "u", "ready": "True"}')
    assert waits_for(waiting(), {}, stored) is None


def test_node_that_keeps_startup_taints_fails_and_returns_capacity(world: World) -> None:
    yard = Kubelet.of(world)
    small = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 1}
    provider = yard.nodes.provider("lab", small, block={"cloudAccount": 1})
    nodes = yard.nodes
    claim, payload = started(yard, startup_taints=(DRIVER,))
    assert nodes.used(provider, "small") == 1
    nodes.run("provision_node", payload)
    failed = nodes.now(claim)
    operation = nodes.operation(failed)
    assert (failed.phase, operation.status, nodes.used(provider, "small")) == ("Failed", "failed", 0)
    assert operation.error is not None
    assert (operation.error.phase, "startup taints" in operation.error.cause) == ("initialize", True)
    assert {condition.type: condition.status for condition in failed.conditions}["Joined"] == "False"
    assert nodes.machines() == []


def test_agent_with_clock_ahead_does_not_silence_its_successor(yard: Yard) -> None:
    nodes = yard.nodes
    now = nodes.clock.now
    yard.rig.clock.now = now() + timedelta(hours=6)
    yard.rig.rounds(yard.agent, 1)
    yard.agent = yard.rig.agent()
    claim, payload = started(yard)
    assert nodes.run("provision_node", payload) == "available"
    assert nodes.now(claim).phase == "Available"


@pytest.mark.parametrize("label", ["spare", "", "ncl_1"])
def test_node_label_that_is_no_claim_id_is_ignored(label: str) -> None:
    report = {
        "name": "worker", "uid": "u", "created_at": "2026-01-01T00:00:00Z", "claim": label, "ready": "True"
    }  # fmt: skip
    assert read(ObservedNode, report).claim is None
    assert read(ObservedNode, {**report, "claim": "ncl_01KDVJXQ80000000000000000A"}).claim is not None
