"""Measurements by operations, each with the name of the operation that it is about."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from stockyard.domain.records import Operation, PhaseRecord
from stockyard.errors import VendorRefused
from stockyard.lifecycle.phases import CREATE_CLUSTER, DELETE_CLUSTER, PROCEDURES, procedure_of
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.engine.advance import measure
from stockyard.operations.relay.outbox import Relay
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 1}


def lines(world: World, message: str) -> list[dict[str, Any]]:
    return [line for line in world.services.telemetry.lines if line["message"] == message]  # type: ignore[attr-defined]


def values(world: World, name: str) -> list[float]:
    return world.services.telemetry.values.get(name, [])  # type: ignore[attr-defined]


@pytest.fixture
def nodes(world: World) -> Nodes:
    return Nodes.of(world.registry, world.services, world.clock)


def test_each_phase_of_an_operation_is_measured_once(world: World) -> None:
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "ready"
    ended_phases = lines(world, "phase ended")
    rows = procedure_of(PROCEDURES, CREATE_CLUSTER).phases
    # Without a profile its phase is skipped.
    phases = [phase.name for phase in rows if not phase.before_workflow and phase.name != "profile"]
    assert [line["phase"] for line in ended_phases] == phases
    assert {(line["operation_id"], line["attempt"], line["tenant"]) for line in ended_phases} == {
        (cluster.operation_id, 1, "acme")
    }
    assert {line["operation_kind"] for line in ended_phases} == {CREATE_CLUSTER}
    assert values(world, "OperationsFailed") == []


def test_each_phase_of_a_deletion_is_measured_once_and_the_last_one_too(world: World) -> None:
    cluster = world.create()
    world.drive(cluster, "provision_cluster")
    deleting = delete_cluster(world.services, cluster.id, "ann")
    assert world.drive(deleting, "delete_cluster") == "gone"
    phases = [phase.name for phase in procedure_of(PROCEDURES, DELETE_CLUSTER).phases if not phase.before_workflow]
    ended_phases = [
        line["phase"] for line in lines(world, "phase ended") if line["operation_id"] == deleting.operation_id
    ]
    assert ended_phases == phases


def test_a_phase_lasts_from_its_first_start_in_the_attempt_to_its_end(world: World) -> None:
    cluster = world.create()
    before = world.services.store.get(Operation, str(cluster.operation_id))
    assert before is not None
    phase = PhaseRecord("network", "succeeded", "2026-01-31T12:00:00.000Z", "2026-01-31T12:00:42.500Z", 1)
    after = replace(before, phases=tuple(phase if each.name == "network" else each for each in before.phases))
    measure(world.services, before, after)
    measure(world.services, after, replace(after, version=after.version + 1))
    assert values(world, "PhaseSeconds") == [42.5]


def test_an_operation_that_fails_is_counted_once_by_its_kind(world: World) -> None:
    world.provider.faults["network"] = [VendorRefused("no such thing")]
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "not_deployed"
    (line,) = lines(world, "operation failed")
    assert (line["operation_id"], line["operation_kind"], line["phase"]) == (
        cluster.operation_id,
        CREATE_CLUSTER,
        "network",
    )
    assert values(world, "OperationsFailed") == [1]


def test_a_deletion_that_is_blocked_is_counted(world: World) -> None:
    cluster = world.create()
    world.drive(cluster, "provision_cluster")
    world.provider.faults["remove network"] = [VendorRefused("not now")]
    deleting = delete_cluster(world.services, cluster.id, "ann")
    assert world.drive(deleting, "delete_cluster") == "blocked"
    assert [line["operation_id"] for line in lines(world, "operation failed")] == [deleting.operation_id]


def test_a_claim_that_is_bound_says_how_long_that_took_and_others_are_counted(nodes: Nodes, world: World) -> None:
    nodes.provider("lab", SMALL)
    first, _ = nodes.claim("first"), nodes.claim("second")
    nodes.clock.advance(30)
    nodes.schedule()
    (line,) = lines(world, "claim bound")
    bound = nodes.now(first)
    assert (line["claim_id"], line["operation_id"], line["attempt"]) == (first.id, bound.operation_id, bound.attempt)
    (seconds,) = values(world, "TimeToBind")
    assert 30 <= seconds < 31
    assert values(world, "ClaimsWaiting") == [1]
    nodes.schedule(nodes.now(first))
    assert values(world, "ClaimsWaiting") == [1]


def test_the_relay_names_the_operations_it_starts_and_says_how_late_it_is(world: World) -> None:
    cluster = world.create()
    relay = Relay(world.registry, lambda: world.workflows, lambda: world.bus, world.clock, world.services.telemetry)
    moment = world.clock.advance(90)
    assert relay.resend(moment - timedelta(seconds=60), lambda: 1.0).failed == 0
    (line,) = lines(world, "execution started")
    assert (line["cluster_id"], line["operation_id"], line["attempt"]) == (cluster.id, cluster.operation_id, 1)
    assert max(values(world, "RelayLag")) == 90
