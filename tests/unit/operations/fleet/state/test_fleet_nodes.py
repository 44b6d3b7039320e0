"""A node that has joined is what its cluster reports; until then its claim and the catalogue tell of it."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stockyard.domain.pools.workload_records import NodeFacts
from stockyard.domain.records import NodeClaim
from stockyard.lifecycle.disruption.vanished import REPORT_SECONDS
from stockyard.operations.fleet.state import FleetNode, Workload, fleet_state
from stockyard.operations.fleet.templates import supply
from stockyard.ports import Replace
from stockyard.scheduling.host_ports import HostPort
from stockyard.scheduling.packing.manifests import read_pod
from stockyard.scheduling.packing.model import Pod, Taint, Toleration
from tests.unit.operations.fleet.pools.conftest import Yard

CORDON = Taint("node.kubernetes.io/unschedulable")
NOT_READY = ("node.kubernetes.io/not-ready", "", "NoSchedule")
DEDICATED = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
STARTING = {"key": "example.com/agent", "effect": "NoSchedule"}
SOURCES = Path(__file__).parents[5] / "layers/common/python/stockyard/operations"


def facts(**fields: Any) -> NodeFacts:
    fields_of = {
        "ready": "True",
        "ready_since": None,
        "created_at": "",
        "unschedulable": False,
        "do_not_disrupt": False,
    }
    fields_of |= {"pod_event_at": None, "protected": (), "protected_count": 0, "budgets": {}, "doubly_guarded": 0}
    return NodeFacts(**{**fields_of, **fields})


def pod(cpu: str = "1", **fields: Any) -> Pod:
    containers = [{"resources": {"requests": {"cpu": cpu}}}]
    return replace(read_pod({"metadata": {"namespace": "default"}, "spec": {"containers": containers}}), **fields)


@pytest.fixture
def node(yard: Yard) -> NodeClaim:
    """The claim of a node of 2 cores that has joined."""
    yard.pool(quantity=1, taints=[DEDICATED], startup_taints=[STARTING], requirements=[of_type("sim.small")])
    yard.settle()
    [claim] = yard.claims()
    assert claim.phase == "Available"
    return claim


def of_type(name: str) -> dict[str, Any]:
    return {"key": "vcluster.com/node-type", "values": [name]}


def picture(yard: Yard, claim: NodeClaim, reported: NodeFacts | None, **fields: Any) -> FleetNode | None:
    """The claim's node, where the report has these facts of it."""
    services = yard.nodes.services
    nodes = {} if reported is None else {claim.node_name or claim.name: reported}
    report = replace(Workload((), {}, {}, {}, services.now(), 1), nodes=nodes, **fields)
    return fleet_state(services, yard.current(), supply(services, yard.current()), [claim], report).nodes.get(
        claim.node_name or claim.name
    )


def node_state(yard: Yard, claim: NodeClaim, reported: NodeFacts | None, **fields: Any) -> FleetNode:
    state = picture(yard, claim, reported, **fields)
    assert state is not None
    return state


def test_taints_are_those_of_the_node_object(yard: Yard, node: NodeClaim) -> None:
    own = Taint("dedicated", "db", "NoSchedule")
    hand = ("maintenance", "", "NoExecute")
    starting = (STARTING["key"], "", STARTING["effect"])
    pending = replace(node, phase="Pending")
    for claim, reported, expected in (
        (node, facts(taints=()), ()),
        (node, facts(taints=(hand,)), (Taint(*hand),)),
        # Whoever puts a startup taint on again keeps pods away with it.
        (node, facts(taints=(starting,)), (Taint(*starting),)),
        (node, facts(taints=(), unschedulable=True), (CORDON,)),
        (node, facts(taints=((CORDON.key, "", CORDON.effect),), unschedulable=True), (CORDON,)),
        # An older agent tells no taints.
        (node, facts(), (own,)),
        (node, facts(unschedulable=True), (own, CORDON)),
        # What passes while a node starts keeps nobody away.
        (pending, facts(taints=(starting, NOT_READY, hand)), (Taint(*hand),)),
        (pending, None, (own,)),
    ):
        assert node_state(yard, claim, reported).node.taints == expected


def test_room_is_what_the_node_object_has(yard: Yard, node: NodeClaim) -> None:
    pending, here = replace(node, phase="Pending"), {"running": {node.node_name: [(pod("500m"), 1)]}}
    for claim, reported, cores, memory in (
        (node, facts(allocatable={"cpu": "1500m", "memory": "2Gi"}), 1000, 2 * 2**30 * 1000),
        (node, facts(allocatable={"cpu": "1500m", "memory": "unknown"}), 1000, 0),
        (node, facts(), 1500, 4 * 2**30 * 1000),
        (pending, facts(allocatable={"cpu": "1", "memory": "0"}), 500, 4 * 2**30 * 1000),
        (pending, None, 1500, 4 * 2**30 * 1000),
    ):
        free = node_state(yard, claim, reported, **here).node.free
        assert (free["cpu"], free.get("memory", 0)) == (cores, memory)


def test_pods_that_are_assigned_and_not_bound_keep_their_room_and_their_volumes(yard: Yard, node: NodeClaim) -> None:
    coming = pod("500m", attachments=(("ebs", 2),), labels=(("app", "db"),))
    reported = facts(volume_limits={"ebs": 8, "efs": 1}, volumes={"ebs": 5})
    state = node_state(yard, node, reported, nominated={node.node_name: [(coming, 1)]})
    assert state.node.free["cpu"] == 1500
    assert state.node.attachable == {"ebs": 1, "efs": 1}
    assert [placed.labels for placed in state.node.pods] == [coming.labels]
    assert node_state(yard, node, facts(volume_limits={"ebs": 2}, volumes={"ebs": 5})).node.attachable == {"ebs": 0}
    assert node_state(yard, node, facts()).node.attachable == {}


def test_labels_are_those_of_the_node_object(yard: Yard, node: NodeClaim) -> None:
    reported = facts(labels={"team": "a", "kubernetes.io/hostname": "ip-1"})
    assert node_state(yard, node, reported).node.labels == reported.labels
    assert node_state(yard, node, facts(labels={})).node.labels == {"kubernetes.io/hostname": node.node_name}
    promised = node_state(yard, replace(node, phase="Pending"), reported).node.labels
    assert (promised["team"], promised["karpenter.sh/nodepool"]) == ("a", "workers")
    assert node_state(yard, node, facts()).node.labels["karpenter.sh/nodepool"] == "workers"


def test_nothing_is_free_on_a_node_that_is_shut(yard: Yard, node: NodeClaim) -> None:
    here = {"running": {node.node_name: [(pod("500m"), 1)]}}
    for ready in ("False", "Unknown"):
        state = node_state(yard, node, facts(ready=ready), **here)
        assert (state.unschedulable_reason, state.node.free, len(state.node.pods)) == ("it is not ready", {}, 1)
        assert not state.is_ready
        # One that has not been ready yet is on its way.
        assert not node_state(yard, replace(node, phase="Pending"), facts(ready=ready)).unschedulable_reason
    state = node_state(yard, node, facts(), obscure={node.node_name: "spec: no"})
    assert (state.unschedulable_reason, state.node.free) == ("a pod on it cannot be read: spec: no", {})


def test_a_node_whose_object_is_gone_is_none(yard: Yard, node: NodeClaim) -> None:
    # The report may be older than the node.
    assert node_state(yard, node, None).node.free
    yard.nodes.clock.advance(REPORT_SECONDS + 1)
    assert picture(yard, node, None) is None
    assert picture(yard, replace(node, phase="Pending"), None) is None
    assert node_state(yard, replace(node, phase="Pending", conditions=()), None).node.free
    # An agent that tells of no nodes says nothing of this one.
    services = yard.nodes.services
    report = Workload((), {}, {}, {}, services.now(), 1)
    assert fleet_state(services, yard.current(), supply(services, yard.current()), [node], report).nodes


def test_claims_that_leave_are_no_nodes(yard: Yard, node: NodeClaim) -> None:
    leaving = replace(node, deleting=True, version=node.version + 1)
    yard.nodes.services.store.commit(Replace(leaving))
    for claim in (leaving, replace(node, phase="Failed")):
        assert picture(yard, claim, facts()) is None


@pytest.mark.parametrize(
    "package", ["fleet/pools", "fleet/disruption", "scheduler", "clusters", "manifests", "node_claims"]
)
def test_nobody_else_makes_nodes_of_claims_and_reports(package: str) -> None:
    """The contract of imports keeps others from the package's modules; this keeps them from reading it all anew."""
    paths = sorted((SOURCES / package).rglob("*.py"))
    assert len(paths) > 4
    for path in paths:
        for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(part, ast.Call):
                assert ast.unparse(part.func) not in ("Node", "model.Node", "packing.Node", "NodeFacts.read"), path
            if isinstance(part, ast.Subscript):
                assert ast.unparse(part.value) not in ("workload.nodes", "report.nodes"), path


READERS = (
    "fleet.pools.scale_up",
    "fleet.pools.placements",
    "fleet.pools.simulations",
    "fleet.disruption.fleet",
    "fleet.explain",
)
"""What decides or shows by what nodes are; a pool's plan, previews and checks ask through these."""


def test_each_who_decides_or_shows_asks_for_the_picture() -> None:
    for reader in READERS:
        path = SOURCES.joinpath(*reader.split(".")).with_suffix(".py")
        calls = [part for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(part, ast.Call)]
        assert "fleet_state" in [ast.unparse(call.func) for call in calls], path


def test_ports_of_daemon_sets_are_taken_before_their_pods_have_come(yard: Yard, node: NodeClaim) -> None:
    tolerant = (Toleration(operator="Exists"),)
    edge = pod(ports=(HostPort(8080),), tolerations=tolerant)
    for running in ({}, {node.node_name: ((edge, 1),)}):
        there = {name: frozenset({"shop/edge"}) for name in running}
        state = node_state(yard, node, facts(), running=running, daemons={"shop/edge": edge}, daemons_running=there)
        assert state.node.ports == (HostPort(8080),)
