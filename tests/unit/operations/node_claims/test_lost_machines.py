"""Machines terminated outside Stockyard: the sweep finds them, their claims fail, and deletion needs no drain."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import Fact, NodeClaim, Operation, SimulatedMachine
from stockyard.errors import VendorUnavailable
from stockyard.lifecycle.nodes.node_commands import DELETE, DRAIN, NODE, commands_of
from stockyard.operations.node_claims import lost_machines
from stockyard.operations.node_claims.power import power_claim
from stockyard.ports import Put, Remove, Tagged
from tests.harness.sweeping import Reaper
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 3}


@pytest.fixture
def nodes(world: World) -> Nodes:
    return Nodes.of(world.registry, world.services, world.clock)


def _available(nodes: Nodes, name: str = "") -> NodeClaim:
    claim = nodes.claim(name)
    nodes.schedule()
    nodes.relay()
    assert nodes.now(claim).phase == "Available"
    return nodes.now(claim)


def _end_elsewhere(nodes: Nodes, claim: NodeClaim) -> None:
    nodes.services.store.commit(Remove(SimulatedMachine, claim.machine_id))


def _sweep(nodes: Nodes, *, reconciled: bool = False) -> dict[str, Any]:
    return Reaper(nodes.registry, nodes.clock, lambda _: nodes.services).run(reconciled=reconciled)


def test_claim_of_lost_machine_fails_and_returns_capacity(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    claim, neighbour = _available(nodes, "reclaimed"), _available(nodes, "stays")
    assert _sweep(nodes)["done"] == []
    _end_elsewhere(nodes, claim)
    assert _sweep(nodes)["done"] == [f"lost {claim.id}"]
    lost = nodes.now(claim)
    assert (lost.phase, lost.reason) == ("Failed", "MachineGone")
    assert claim.machine_id in lost.message
    (condition,) = (condition for condition in lost.conditions if condition.type == "Provisioned")
    assert (condition.status, condition.reason) == ("False", "MachineGone")
    assert nodes.used(provider, "small") == 1
    assert nodes.now(neighbour).phase == "Available"
    assert _sweep(nodes)["done"] == [], "it is said once"
    nodes.delete(lost)
    nodes.delete(neighbour)
    assert nodes.relay() == ["gone", "gone"]
    assert nodes.used(provider, "small") == 0
    assert nodes.nothing_left()


def test_capacity_of_lost_machine_goes_to_waiting_claim(nodes: Nodes) -> None:
    nodes.provider("lab", {**SMALL, "maxCapacity": 1})
    claim, waits = _available(nodes), nodes.claim("waits")
    nodes.schedule()
    assert nodes.now(waits).reason == "NoCapacity"
    _end_elsewhere(nodes, claim)
    _sweep(nodes)
    nodes.schedule()
    nodes.relay()
    assert nodes.now(waits).phase == "Available"


def test_machines_missing_from_list_do_not_hide_lost_ones(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_machines, "MOST", 2)
    provider = nodes.provider("lab", {**SMALL, "maxCapacity": 5})
    claims = sorted((_available(nodes, f"n{number}") for number in range(5)), key=lambda claim: claim.id)
    _end_elsewhere(nodes, claims[4])
    monkeypatch.setattr(nodes.services.node_sources["simulated"], "tagged", lambda *_: ())
    for _ in range(5):
        _sweep(nodes)
        nodes.clock.advance(60)
    assert [nodes.now(claim).phase for claim in claims] == ["Available"] * 4 + ["Failed"]
    assert nodes.used(provider, "small") == 4


def test_machine_missing_from_list_alone_is_not_lost(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes.provider("lab", SMALL)
    claim = _available(nodes)
    monkeypatch.setattr(nodes.services.node_sources["simulated"], "tagged", lambda *_: ())
    assert _sweep(nodes)["done"] == []
    assert nodes.now(claim).phase == "Available"


def test_unreachable_provider_loses_no_machine(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes.provider("lab", SMALL)
    claim = _available(nodes)
    _end_elsewhere(nodes, claim)

    def unreachable(*_: Any) -> Sequence[Tagged]:
        raise VendorUnavailable("no answer")

    monkeypatch.setattr(nodes.services.node_sources["simulated"], "tagged", unreachable)
    report = _sweep(nodes)
    assert report["done"] == []
    assert len(report["failures"]) == 1
    assert nodes.now(claim).phase == "Available"


def test_claims_with_running_operation_are_skipped(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL)
    switched, deleted = _available(nodes, "switched"), _available(nodes, "deleted")
    for claim in (switched, deleted):
        _end_elsewhere(nodes, claim)
    power_claim(nodes.services, switched.id, "Off", "user:ann")
    nodes.delete(deleted)
    assert _sweep(nodes)["done"] == []
    assert not lost_machines.note(nodes.services, switched.id)
    assert not lost_machines.note(nodes.services, deleted.id)
    assert not lost_machines.note(nodes.services, "clm_gone")


def test_distrusted_table_loses_no_machine(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL)
    claim = _available(nodes)
    _sweep(nodes)
    _end_elsewhere(nodes, claim)
    nodes.hours(2)
    assert _sweep(nodes)["distrusted"]
    assert nodes.now(claim).phase == "Available"
    assert _sweep(nodes, reconciled=True)["done"] == [f"lost {claim.id}"]


def test_orphaned_machine_is_removed_when_seen_twice(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL)
    claim = _available(nodes)
    (machine,) = nodes.machines()
    stranger = replace(machine, id="m-stranger", claim_id="clm_gone", tags={**machine.tags, "resource": "clm_gone"})
    foreign = replace(stranger, id="m-foreign", tags={**stranger.tags, "installation": "another"})
    nodes.services.store.commit(Put(stranger), Put(foreign))
    assert _sweep(nodes)["orphans"] == ["simulated machine//m-stranger"]
    nodes.hours(0.9)
    assert _sweep(nodes)["removed"] == [], "it is too young"
    nodes.hours(0.9)
    assert _sweep(nodes)["removed"] == ["simulated machine//m-stranger"]
    assert {machine.id for machine in nodes.machines()} == {claim.machine_id, "m-foreign"}


def test_lost_node_is_deleted_without_drain(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL)
    claim = _available(nodes)
    node = {"name": "n", "uid": "u", "ready": "Unknown", "starting": [], "unlabelled": []}
    nodes.services.store.commit(Put(Fact(f"{claim.id}/{NODE}", json.dumps(node), nodes.services.now())))
    nodes.delete(claim)

    def kinds_of_commands(record: NodeClaim) -> list[str]:
        return [command.kind for command in commands_of(record, {}, node, "token", nodes.clock.now(), None)]

    assert kinds_of_commands(nodes.now(claim)) == [DRAIN]
    lost = replace(nodes.now(claim), phase="Failed", reason="MachineGone")
    assert kinds_of_commands(lost) == [DELETE]


def test_deletion_of_lost_node_skips_drain(nodes: Nodes, world: World) -> None:
    nodes.provider("lab", SMALL)
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "ready"
    claim = nodes.claim("gone", cluster_ref="demo")
    nodes.schedule()
    nodes.relay()
    node = {"name": "n", "uid": "u", "ready": "Unknown", "starting": [], "unlabelled": []}
    nodes.services.store.commit(Put(Fact(f"{claim.id}/{NODE}", json.dumps(node), nodes.services.now())))
    _end_elsewhere(nodes, nodes.now(claim))
    _sweep(nodes)
    nodes.delete(claim)
    operation_id = str(nodes.now(claim).operation_id)
    assert nodes.relay() == ["gone"]
    operation = nodes.services.store.get(Operation, operation_id)
    assert operation is not None
    assert {phase.name: phase.message for phase in operation.phases}["drain"] == "The machine is gone."
