"""An operation accepted before a release has none of the phases that came with it, and goes on all the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockyard.domain.records import Cluster, Operation
from stockyard.lifecycle.operation import phase_of
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.ports import Replace
from tests.unit.operations.conftest import World


def forget_phase(world: World, cluster: Cluster, name: str) -> None:
    """Make the record of the cluster's operation one of a release that did not have this phase."""
    operation = world.services.store.get(Operation, str(cluster.operation_id))
    assert operation is not None
    phases = tuple(record for record in operation.phases if record.name != name)
    assert len(phases) == len(operation.phases) - 1
    world.services.store.commit(Replace(replace(operation, phases=phases, version=operation.version + 1)))


def phase_states(world: World, operation_id: str) -> dict[str, str]:
    operation = world.services.store.get(Operation, operation_id)
    assert operation is not None
    assert operation.status == "succeeded"
    return {record.name: record.state for record in operation.phases}


@pytest.mark.parametrize("name", ["network", "report", "deploy", "complete"])
def test_a_creation_goes_through_a_phase_that_came_later(world: World, name: str) -> None:
    cluster = world.create()
    forget_phase(world, cluster, name)
    assert world.drive(cluster, "provision_cluster") == "ready"
    assert phase_states(world, str(cluster.operation_id))[name] == "succeeded"


@pytest.mark.parametrize("name", ["settle", "network", "client"])
def test_a_deletion_goes_through_a_phase_that_came_later(world: World, name: str) -> None:
    cluster = world.create()
    world.drive(cluster, "provision_cluster")
    deleting = delete_cluster(world.services, cluster.id, "ann")
    forget_phase(world, deleting, name)
    assert world.drive(deleting, "delete_cluster") == "gone"
    assert phase_states(world, str(deleting.operation_id))[name] == "succeeded"


def test_a_phase_that_is_not_recorded_is_pending(world: World) -> None:
    cluster = world.create()
    operation = world.services.store.get(Operation, str(cluster.operation_id))
    assert operation is not None
    record = phase_of(operation, "warm_images")
    assert (record.name, record.state, record.started_at) == ("warm_images", "pending", None)
