"""A node that has joined is available when its startup taints are gone and it has its claim's labels."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from local.kube_api import node
from stockyard.domain.models.base import read
from stockyard.domain.models.observations import ObservedNode
from stockyard.domain.records import NodeClaim, Placement
from stockyard.lifecycle.node_commands import LABEL, command_id, commands_of, done_fact, seen_of, waits_for
from stockyard.operations.join_machine import Invitation
from stockyard.operations.observe_cluster import facts_of
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes
from tests.unit.operations.test_nodes_join import Yard

DRIVER = {"key": "driver", "value": "missing", "effect": "NoSchedule"}
OWN = {"key": "own", "value": "", "effect": "NoSchedule"}
RESERVED = "node-restriction.kubernetes.io/tier"


class Kubelet(Yard):
    """A machine that joins with the taints and the labels that it is given, but for those it may not set itself."""

    def node(self, given: Invitation) -> dict[str, Any]:
        joined = node(given.node_name, claim=given.labels["stockyard.dev/claim"], taints=given.taints)
        allowed = {key: value for key, value in given.labels.items() if not key.startswith("node-restriction.")}
        joined["metadata"]["labels"] |= allowed
        return joined


@pytest.fixture
def yard(world: World) -> Yard:
    found = Kubelet.of(world)
    small = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "properties": {"tier": "gold,silver"}}
    found.nodes.provider("lab", small, block={"cloudAccount": 1})
    return found


def started(yard: Yard, **fields: Any) -> tuple[NodeClaim, dict[str, Any]]:
    claim = yard.nodes.claim("worker", cluster_ref="demo", **fields)
    yard.nodes.schedule()
    bound = yard.nodes.now(claim)
    given = {"tenant": "acme", "claim_id": claim.id, "operation_id": bound.operation_id, "attempt": bound.attempt}
    return claim, given


def untaint(yard: Yard, key: str) -> None:
    """The owner of a startup taint takes it away."""
    spec = yard.rig.node("worker")["spec"]
    spec["taints"] = [taint for taint in spec["taints"] if taint["key"] != key]


def message(nodes: Nodes, claim: NodeClaim) -> str:
    phases = {one.name: one for one in nodes.operation(nodes.now(claim)).phases}
    return phases["initialize"].message


def test_a_node_is_available_when_the_owners_of_its_startup_taints_have_taken_them_away(yard: Yard) -> None:
    nodes = yard.nodes
    claim, given = started(yard, taints=(OWN,), startup_taints=(DRIVER, {"key": "net", "effect": "NoExecute"}))
    assert nodes.run("provision_node", given, most=60).startswith("still at initialize")
    assert nodes.now(claim).phase == "Pending"
    assert message(nodes, claim) == "Waiting for node worker to lose its startup taints driver, net."
    assert {taint["key"] for taint in yard.rig.node("worker")["spec"]["taints"]} == {"own", "driver", "net"}
    untaint(yard, "net")
    assert nodes.run("provision_node", given, most=20).startswith("still at initialize")
    assert message(nodes, claim) == "Waiting for node worker to lose its startup taints driver."
    untaint(yard, "driver")
    assert nodes.run("provision_node", given) == "available"
    assert [taint["key"] for taint in yard.rig.node("worker")["spec"]["taints"]] == ["own"]


def test_resolved_properties_become_labels_also_those_that_a_kubelet_may_not_set(yard: Yard) -> None:
    nodes = yard.nodes
    silver = {"key": "tier", "operator": "In", "values": ["silver"]}
    claim, given = started(yard, requirements=(silver,), properties={RESERVED: "secure"})
    assert nodes.run("provision_node", given) == "available"
    labels = yard.rig.node("worker")["metadata"]["labels"]
    assert labels["tier"] == "silver"
    assert labels[RESERVED] == "secure"
    assert labels["vcluster.com/node-type"] == "lab.small"
    assert set(nodes.now(claim).node_labels.items()) <= set(labels.items())
    assert done_fact(nodes.now(claim), LABEL) in facts_of(nodes.services, claim)


def test_a_node_that_brings_all_labels_along_is_given_none(yard: Yard) -> None:
    claim, given = started(yard)
    assert yard.nodes.run("provision_node", given) == "available"
    assert done_fact(yard.nodes.now(claim), LABEL) not in facts_of(yard.nodes.services, claim)


# --- the pure part ----------------------------------------------------------------------------------------------------

SEEN = {"name": "worker", "uid": "u", "ready": "True", "taints": [], "labels": {}}


def waiting(**fields: Any) -> NodeClaim:
    placed = Placement("npr_1", "lab.small", "on-demand", ("a",), 1, "t")
    known = {"placement": placed, "machine_id": "m", "node_labels": {"a": "b", "c": "d"}}
    return NodeClaim("ncl_1", "worker", "t", "t", **{**known, **fields})


def test_startup_taints_are_told_apart_by_key_and_effect() -> None:
    claim = waiting(startup_taints=(DRIVER,))

    def starting(**taint: str) -> Any:
        return seen_of(claim, {**SEEN, "taints": [{**DRIVER, **taint}]})["starting"]

    assert starting() == starting(value="other") == ["driver"]
    assert starting(key="x") == starting(effect="NoExecute") == []


def test_labels_are_asked_for_until_they_are_there_or_done(yard: Yard) -> None:
    claim, now = waiting(), yard.nodes.clock.now()
    lacking = seen_of(claim, {**SEEN, "labels": {"a": "b", "c": "x"}})
    (command,) = commands_of(claim, {}, lacking, "token", now, 600)
    assert (command.kind, command.id) == ("label", command_id(claim, LABEL))
    assert command.arguments == {"node": "worker", "labels": {"c": "d"}}
    assert waits_for(claim, {}, lacking) == "to get its labels c"
    done = {done_fact(claim, LABEL): "t"}
    assert commands_of(claim, done, lacking, "token", now, 600) == []
    assert waits_for(claim, done, lacking) == ""
    complete = seen_of(claim, {**SEEN, "labels": claim.node_labels})
    assert commands_of(claim, {}, complete, "token", now, 600) == []
    assert waits_for(claim, {}, complete) == ""
    assert waits_for(claim, {}, {**complete, "ready": "Unknown"}) == "to be ready"
    assert commands_of(waiting(phase="Available"), {}, lacking, "token", now, 600) == []


def test_what_an_older_release_has_kept_of_a_node_is_read() -> None:
    kept = json.loads('{"name": "worker", "uid": "u", "ready": "True"}')
    assert waits_for(waiting(), {}, kept) == ""


def test_a_node_that_is_never_ready_for_pods_fails_and_gives_its_place_back(world: World) -> None:
    yard = Kubelet.of(world)
    small = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 1}
    provider = yard.nodes.provider("lab", small, block={"cloudAccount": 1})
    nodes = yard.nodes
    claim, given = started(yard, startup_taints=(DRIVER,))
    assert nodes.used(provider, "small") == 1
    nodes.run("provision_node", given)
    failed = nodes.now(claim)
    operation = nodes.operation(failed)
    assert (failed.phase, operation.status, nodes.used(provider, "small")) == ("Failed", "failed", 0)
    assert operation.error is not None
    assert (operation.error.phase, "startup taints" in operation.error.cause) == ("initialize", True)
    assert {one.type: one.status for one in failed.conditions}["Joined"] == "False"
    assert nodes.machines() == []


def test_an_agent_whose_clock_was_ahead_keeps_none_after_it_from_being_heard(yard: Yard) -> None:
    nodes = yard.nodes
    now = nodes.clock.now
    yard.rig.clock.now = now() + timedelta(hours=6)
    yard.rig.rounds(yard.agent, 1)
    yard.agent = yard.rig.agent()
    claim, given = started(yard)
    assert nodes.run("provision_node", given) == "available"
    assert nodes.now(claim).phase == "Available"


@pytest.mark.parametrize("label", ["spare", "", "ncl_1"])
def test_a_node_with_a_label_that_is_no_claim_is_a_node_like_others(label: str) -> None:
    seen = {
        "name": "worker", "uid": "u", "created_at": "2026-01-01T00:00:00Z", "claim": label, "ready": "True"
    }  # fmt: skip
    assert read(ObservedNode, seen).claim is None
    assert read(ObservedNode, {**seen, "claim": "ncl_01KDVJXQ80000000000000000A"}).claim is not None
