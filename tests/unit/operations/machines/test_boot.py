"""A machine's report about its first boot is kept, freed of secrets, and told with the failure of its operation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import Fact, NodeClaim, Operation
from stockyard.errors import NotFound, Unauthorized
from stockyard.operations.machines.boot import boot_fact, last_words, report_of_control_plane, report_of_node
from tests.unit.operations.conftest import World
from tests.unit.operations.machines.test_join import PROOF, Yard

LINES = """[init] Using Kubernetes version: v1.35.4
[preflight] Some fatal errors occurred: [ERROR CRI]: container runtime is not running
kubeadm join 10.0.0.1:6443 --token abcdef.0123456789abcdef
Authorization: Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl
secret=Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4
"""


def step(name: str, exit: int | None = None, lines: str = "") -> dict[str, Any]:
    return {"step": name, "exit": exit, "lines": lines}


@pytest.fixture
def yard(world: World) -> Yard:
    yard = Yard.of(world)
    small = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 2}
    yard.nodes.provider("lab", small, block={"cloudAccount": 1})
    yard.boots = False
    return yard


def registering(yard: Yard) -> NodeClaim:
    claim = yard.nodes.claim("worker", cluster_ref="demo")
    yard.nodes.schedule()
    bound = yard.nodes.now(claim)
    payload = {"tenant": "acme", "claim_id": claim.id, "operation_id": bound.operation_id, "attempt": bound.attempt}
    assert yard.nodes.run("provision_node", payload, most=2).startswith("still at register")
    bound = yard.nodes.now(claim)
    yard.prove(bound.machine_id)  # type: ignore[attr-defined]
    return bound


def test_the_failure_is_kept_while_the_machine_tries_again(yard: Yard) -> None:
    claim, services = registering(yard), yard.nodes.services
    report_of_node(services, claim.id, PROOF, step("packages"))
    assert "at the step packages" in last_words(services, claim)
    report_of_node(services, claim.id, PROOF, step("join", 1, LINES))
    report_of_node(services, claim.id, PROOF, step("packages"))
    words = last_words(services, claim)
    assert "at the step packages" in words
    assert "step join had ended with 1" in words
    assert "container runtime is not running" in words
    for secret in ("0123456789abcdef", "eyJ", "Zm9vYmFy"):
        assert secret not in words


def test_another_attempt_has_another_machine(yard: Yard) -> None:
    claim, services = registering(yard), yard.nodes.services
    report_of_node(services, claim.id, PROOF, step("join", 1, LINES))
    assert last_words(services, replace(claim, attempt=claim.attempt + 1)) is None


def test_only_the_recorded_machine_is_heard(yard: Yard) -> None:
    claim, services = registering(yard), yard.nodes.services
    yard.prove("i-other")  # type: ignore[attr-defined]
    with pytest.raises(Unauthorized):
        report_of_node(services, claim.id, PROOF, step("join", 1, LINES))
    with pytest.raises(NotFound):
        report_of_node(services, "ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV", PROOF, step("join"))
    assert last_words(services, claim) is None


def test_a_node_that_never_joins_fails_with_what_its_machine_said(yard: Yard) -> None:
    claim, nodes = registering(yard), yard.nodes
    report_of_node(nodes.services, claim.id, PROOF, step("join", 1, LINES))
    nodes.clock.advance(nodes.services.settings.register_seconds + 1)
    nodes.relay()
    operation = nodes.services.store.get(Operation, nodes.now(claim).operation_id or "")
    assert operation is not None
    assert operation.error is not None
    assert "container runtime is not running" in operation.error.cause
    nodes.delete(nodes.now(claim))
    nodes.relay()
    assert nodes.services.store.get(Fact, boot_fact(claim)) is None


def test_a_control_plane_that_never_reports_fails_with_what_its_machine_said(world: World) -> None:
    cluster = world.create()
    services = world.services

    def speak(states: object, token: str) -> None:
        report_of_control_plane(services, cluster.id, world.proof(cluster), step("init", 1, LINES))

    assert world.drive(cluster, "provision_cluster", report=False, before=speak) == "not_deployed"
    operation = services.store.get(Operation, world.cluster(cluster).operation_id or "")
    assert operation is not None
    assert operation.error is not None
    assert "step init had ended with 1" in operation.error.cause
    assert "container runtime is not running" in operation.error.cause


def test_only_the_recorded_control_plane_is_heard(world: World) -> None:
    cluster = world.create()
    world.drive(cluster, "provision_cluster")
    with pytest.raises(NotFound, match="waits for its machine"):
        report_of_control_plane(world.services, cluster.id, world.proof(cluster), step("init", 1, LINES))
    assert last_words(world.services, world.cluster(cluster)) is None
