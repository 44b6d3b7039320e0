"""A third kind of operation on a cluster: the cluster stays ready while it is changed, whatever becomes of the change.

The rows of the change are the test's; the product has none yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import Cluster, Event, Operation, Outbox
from stockyard.errors import Fenced, IllegalTransition, VendorRefused, VendorUnavailable
from stockyard.lifecycle.operation import phase_of, progress
from stockyard.lifecycle.phases import ANY, DEGRADED, PROCEDURES
from stockyard.lifecycle.procedure import COMPENSATE, ENSURE, Phase, Procedure
from stockyard.operations.clusters.changes.resume import resume_cluster
from stockyard.operations.clusters.changes.start_change import start_change
from stockyard.operations.clusters.phases import RUNNER
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.engine.advance import Fence
from stockyard.operations.engine.find import children_of
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.engine.run_phase import run_phase
from stockyard.operations.engine.sweep import CLOSED, sweep_operation
from stockyard.operations.listing import every
from stockyard.ports import Remove
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

CHANGE = Procedure(
    kind="change_size",
    workflow="change-size",
    subject="cluster",
    comment="Changes the size of a cluster.",
    phases=(
        Phase("grow", 600, ENSURE, "Grown", undoes=("grow",)),
        Phase("settle_in", 600, ENSURE, undoes=("settle_in",), resumed_at="grow"),
        Phase("done", 60, "changed"),
    ),
    on_failure=COMPENSATE,
    error="ClusterCouldNotBeDeployed",
    doing="its size was being changed",
    advice="A resume goes on from the phase that failed.",
    ends=("changed", "not_changed"),
    resumable=True,
)


@pytest.fixture
def cluster(world: World) -> Cluster:
    """A ready cluster in a world whose table of procedures has the change."""
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "ready"
    world.services = replace(world.services, procedures={**PROCEDURES, (CHANGE.kind, ANY): CHANGE})
    return cluster


def begin(world: World, cluster: Cluster, parent: str = "") -> Operation:
    return start_change(world.services, cluster.id, CHANGE.kind, "user:ann", parent)


def condition(world: World, cluster: Cluster) -> str | None:
    """The status of ``Degraded``; None where the cluster has no such condition."""
    statuses = {condition.type: condition.status for condition in world.cluster(cluster).conditions}
    return statuses.get(DEGRADED)


def operation(world: World, id: str) -> Operation:
    stored = world.services.store.get(Operation, id)
    assert stored is not None
    return stored


def test_cluster_stays_ready_during_change(world: World, cluster: Cluster) -> None:
    change = begin(world, cluster)
    assert world.cluster(cluster).status == "ready"
    with pytest.raises(IllegalTransition):
        begin(world, cluster)
    assert world.drive(cluster, "change_size") == "changed"
    assert world.cluster(cluster).status == "ready"
    assert world.cluster(cluster).phase is None
    assert operation(world, change.id).status == "succeeded"
    assert set(world.provider.things.values()) >= {"grow", "settle_in"}
    statuses = {event.after for event in every(world.services.store, Event) if event.detail_type == "Cluster"}
    assert "failed" not in statuses


def test_failed_change_is_undone_and_cluster_is_degraded(world: World, cluster: Cluster) -> None:
    world.provider.late["grow"] = [VendorRefused("no such size")]
    change = begin(world, cluster)
    assert world.drive(cluster, "change_size") == "not_changed"
    assert world.cluster(cluster).status == "ready"
    assert condition(world, cluster) == "True"
    assert "grow" not in world.provider.things.values()
    failed = operation(world, change.id)
    assert failed.status == "failed"
    assert failed.error is not None
    assert (failed.error.phase, failed.error.cause) == ("grow", "no such size")
    begin(world, cluster)
    assert world.drive(cluster, "change_size") == "changed"
    assert condition(world, cluster) == "False"


def test_failed_change_resumes_at_phase_of_its_row(world: World, cluster: Cluster) -> None:
    world.provider.faults["settle_in"] = [VendorRefused("in use")]
    change = begin(world, cluster)
    assert world.drive(cluster, "change_size") == "not_changed"
    resumed = resume_cluster(world.services, cluster.id, "user:ann")
    assert (resumed.status, resumed.phase, resumed.attempt) == ("ready", "grow", 2)
    assert condition(world, cluster) == "Unknown"
    assert world.drive(cluster, "change_size") == "changed"
    assert condition(world, cluster) == "False"
    assert operation(world, change.id).attempt == 2


def test_worker_of_earlier_attempt_is_fenced(world: World, cluster: Cluster) -> None:
    world.provider.faults["grow"] = [VendorRefused("no")]
    change = begin(world, cluster)
    assert world.drive(cluster, "change_size") == "not_changed"
    resume_cluster(world.services, cluster.id, "user:ann")
    with pytest.raises(Fenced):
        run_phase(RUNNER, world.services, Fence(Cluster, cluster.id, change.id, 1), "grow")
    assert "grow" not in world.provider.things.values()


def test_deletion_overtakes_change(world: World, cluster: Cluster) -> None:
    change = begin(world, cluster)
    fence = Fence(Cluster, cluster.id, change.id, 1)
    assert run_phase(RUNNER, world.services, fence, "grow").done
    deleting = delete_cluster(world.services, cluster.id, "user:ann")
    closed = operation(world, change.id)
    assert closed.status == "failed"
    assert closed.error is not None
    assert closed.error.cause == "The cluster was deleted while its size was being changed."
    with pytest.raises(Fenced):
        run_phase(RUNNER, world.services, fence, "settle_in")
    assert world.drive(deleting, "delete_cluster") == "blocked", "no row of the deletion removes what the change made"
    assert {line.phase for line in lines_of(world.services, cluster.id)} == {"grow"}


def test_sweep_closes_change_of_lost_execution(world: World, cluster: Cluster) -> None:
    change = begin(world, cluster)
    world.clock.advance(world.services.settings.stuck_seconds + 1)
    assert sweep_operation(RUNNER, world.services, world.cluster(cluster)) == CLOSED
    assert (world.cluster(cluster).status, condition(world, cluster)) == ("ready", "True")
    assert operation(world, change.id).status == "failed"


@pytest.mark.parametrize("phase", ["grow", "settle_in"])
@pytest.mark.parametrize("when", ["faults", "late"])
def test_change_continues_after_crash_in_any_phase(world: World, cluster: Cluster, phase: str, when: str) -> None:
    """The worker crashes before or after the call; the next one finds what the first one created."""
    faults: dict[str, Any] = getattr(world.provider, when)
    faults[phase] = [VendorUnavailable("lost"), VendorUnavailable("lost again")]
    begin(world, cluster)
    assert world.drive(cluster, "change_size") == "changed"
    assert list(world.provider.things.values()).count(phase) == 1


def test_claims_are_served_during_change(world: World, cluster: Cluster) -> None:
    begin(world, cluster)
    nodes = Nodes.of(world.registry, world.services, world.clock)
    small: Mapping[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}}
    nodes.provider("lab", small)
    claim = nodes.claim("a", cluster_ref="demo")
    for item in list(every(world.services.store, Outbox)):
        world.services.store.commit(Remove(Outbox, item.id))
    nodes.schedule()
    assert nodes.relay() == ["available"]
    nodes.delete(claim)
    assert nodes.relay() == ["gone"]
    assert world.drive(cluster, "change_size") == "changed"


def test_progress_counts_child_operations(world: World, cluster: Cluster) -> None:
    other_cluster = world.create("other")
    assert world.drive(other_cluster, "provision_cluster") == "ready"
    parent = begin(world, cluster)
    child = begin(world, other_cluster, parent.id)
    assert child.parent == parent.id
    (part,) = children_of(world.services.store, operation(world, parent.id))
    assert part.id == child.id
    assert progress(operation(world, parent.id), [part]) == 0
    assert world.drive(other_cluster, "change_size") == "changed"
    now = operation(world, parent.id)
    assert progress(now, children_of(world.services.store, now)) == 25
    assert phase_of(now, "grow").state == "pending"
    assert world.drive(cluster, "change_size") == "changed"
    with pytest.raises(IllegalTransition):
        begin(world, other_cluster, parent.id)
