"""The sweep closes abandoned operations on claims, and the deletion of a cluster deletes its claims."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment, Outbox, SimulatedMachine
from stockyard.errors import PermissionDenied, VendorRefused
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.listing import every
from stockyard.operations.node_claims.power import power_claim
from stockyard.operations.sweep import records as sweep_records
from stockyard.operations.sweep.orphans import living
from stockyard.ports import Remove
from tests.harness.sweeping import Reaper
from tests.harness.worlds.memory import MemoryWorkflows
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 3}


@pytest.fixture
def nodes(world: World) -> Nodes:
    return Nodes.of(world.registry, world.services, world.clock)


def _sweep(nodes: Nodes) -> list[str]:
    done: list[str] = Reaper(nodes.registry, nodes.clock, lambda _: nodes.services).run()["done"]
    return done


def _lose_executions(nodes: Nodes) -> None:
    """End all workflows that the pass has started, without a word."""
    workflows = nodes.services.workflows
    assert isinstance(workflows, MemoryWorkflows)
    for workflow, name in workflows.executions:
        workflows.stop(workflow, name)


def test_sweep_retries_blocked_deletion(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL)
    claim = nodes.claim()
    nodes.schedule()
    nodes.relay()
    nodes.errors["terminate"] = [VendorRefused("not now")]
    nodes.delete(claim)
    assert nodes.relay() == ["blocked"]
    assert _sweep(nodes) == []
    nodes.hours(0.3)
    assert _sweep(nodes) == [f"retried {claim.id}"]
    assert nodes.relay() == ["gone"]
    assert nodes.nothing_left()


def test_sweep_fails_claim_of_lost_workflow(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    claim = nodes.claim()
    nodes.schedule()
    _sweep(nodes)
    _lose_executions(nodes)
    nodes.hours(1)
    assert _sweep(nodes) == [f"closed {claim.id}"]
    failed = nodes.now(claim)
    assert (failed.phase, nodes.used(provider, "small")) == ("Failed", 0)
    nodes.delete(claim)
    assert nodes.relay()[-1] == "gone"
    assert nodes.nothing_left()


def test_sweep_leaves_waiting_claim(nodes: Nodes) -> None:
    nodes.claim()
    nodes.hours(20)
    assert _sweep(nodes) == []


def test_claims_count_as_living_owners(nodes: Nodes) -> None:
    claim = nodes.claim()
    assert claim.id in living(nodes.services, every(nodes.services.store, NodeClaim))


def test_deletion_of_cluster_deletes_its_claims(nodes: Nodes, world: World) -> None:
    nodes.provider("lab", SMALL)
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "ready"
    claims = [nodes.claim(f"n{i}", cluster_ref="demo") for i in range(2)]
    nodes.claim("waits", cluster_ref="demo", provider_ref="none", strict=False)
    nodes.schedule()
    nodes.relay()
    assert {nodes.now(claim).phase for claim in claims} == {"Available"}
    delete_cluster(nodes.services, cluster.id, "user:ann")
    world.services = replace(nodes.services)
    machine_counts: list[int] = []

    # The claims' own workflows run while the cluster's waits for them.
    original = world.clock.advance

    def meanwhile(seconds: float) -> Any:
        machine_counts.append(len(list(every(nodes.services.store, SimulatedMachine))))
        moment = original(seconds)
        nodes.relay()
        return moment

    world.clock.advance = meanwhile
    assert world.drive(cluster, "delete_cluster") == "gone"
    assert machine_counts[0] == 2
    assert nodes.services.store.get(Cluster, cluster.id) is None
    assert list(every(nodes.services.store, NodeEnvironment)) == []
    assert nodes.nothing_left()


@pytest.mark.parametrize("cause", ["", "not allowed"])
def test_deletion_of_cluster_is_blocked_by_remaining_claims(nodes: Nodes, world: World, cause: str) -> None:
    nodes.provider("lab", SMALL)
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "ready"
    claim = nodes.claim("stuck", cluster_ref="demo")
    nodes.schedule()
    nodes.relay()
    delete_cluster(nodes.services, cluster.id, "user:ann")
    world.services = nodes.services
    if cause:
        nodes.delete(claim)
        nodes.errors["terminate"] = [VendorRefused(cause)]
        assert nodes.relay()[-1] == "blocked"
    assert world.drive(cluster, "delete_cluster") == "blocked"
    blocked = world.cluster(cluster)
    deleted = next(condition for condition in blocked.conditions if condition.type == "Deleted")
    assert "Waiting for nodes to be given back: stuck." in deleted.message
    assert ("stuck: not allowed" in deleted.message) is bool(cause)
    assert nodes.now(claim).deleting
    delete_cluster(nodes.services, cluster.id, "user:ann")
    assert nodes.relay()[-1] == "gone", "its nodes are tried again too"
    assert world.drive(world.cluster(cluster), "delete_cluster") == "gone"


def test_sweep_closes_power_operation_of_lost_workflow(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL)
    claim = nodes.claim()
    nodes.schedule()
    nodes.relay()
    power_claim(nodes.services, claim.id, "Off", "user:ann")
    assert _sweep(nodes) == []
    nodes.hours(1)
    assert _sweep(nodes) == [f"closed {claim.id}"]
    assert (nodes.now(claim).phase, nodes.now(claim).desired_power) == ("Available", None)
    for item in list(every(nodes.services.store, Outbox)):
        nodes.services.store.commit(Remove(Outbox, item.id))
    power_claim(nodes.services, claim.id, "Off", "user:ann")
    nodes.relay()
    assert nodes.now(claim).power == "Off"


def test_sweep_continues_after_error_of_one_claim(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes.provider("lab", SMALL)
    bad, good = nodes.claim("bad"), nodes.claim("good")
    nodes.schedule()
    _lose_executions(nodes)
    nodes.hours(1)
    sweep = sweep_records.sweep_claim

    def broken(services: Any, claim: Any, providers: Any) -> str:
        if claim.id == bad.id:
            raise KeyError("initialize")
        return sweep(services, claim, providers)

    monkeypatch.setattr(sweep_records, "sweep_claim", broken)
    report = Reaper(nodes.registry, nodes.clock, lambda _: nodes.services).run()
    assert report["done"] == [f"closed {good.id}"]
    assert report["failures"] == [f"{bad.id}: KeyError"]


def test_failure_of_first_phase_keeps_scheduling_succeeded(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL)
    claim = nodes.claim()
    nodes.schedule()
    nodes.errors["environment"] = [PermissionDenied("no")]
    nodes.relay()
    failed = nodes.now(claim)
    operation = nodes.operation(failed)
    assert operation.error is not None
    assert operation.error.phase == "environment"
    assert {phase.name: phase.state for phase in operation.phases}["schedule"] == "succeeded"
    conditions = {condition.type: condition.status for condition in failed.conditions}
    assert (conditions["Scheduled"], conditions["Provisioned"]) == ("True", "False")
