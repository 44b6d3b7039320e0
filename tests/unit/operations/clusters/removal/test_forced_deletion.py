"""A cluster whose deletion does not end is forgotten, and what may be left of it is named."""

from __future__ import annotations

import pytest

from stockyard.domain.records import AuditRecord, Cluster, Name, Operation, Resource
from stockyard.errors import IllegalTransition, NotFound, VendorRefused
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.clusters.removal.forced_deletion import force_deletion
from stockyard.operations.listing import every
from tests.unit.operations.clusters.balanced_world import USER, WEB, BalancedWorld, balanced_world


@pytest.fixture
def blocked() -> BalancedWorld:
    """A cluster whose network cannot be removed."""
    balanced = balanced_world({**WEB, "min_size": 0})
    delete_cluster(balanced.world.services, balanced.id, USER)
    balanced.provider.faults["remove network"] = [VendorRefused("something stands in it")]
    assert balanced.world.drive(balanced.cluster, "delete") == "blocked"
    return balanced


def test_a_deletion_is_not_forced_at_once(blocked: BalancedWorld) -> None:
    with pytest.raises(IllegalTransition, match="can be forced from"):
        force_deletion(blocked.world.services, blocked.id, USER, "r")
    blocked.world.clock.advance(800)
    with pytest.raises(IllegalTransition):
        force_deletion(blocked.world.services, blocked.id, USER, "r")


def test_a_ready_cluster_is_not_forgotten() -> None:
    balanced = balanced_world()
    balanced.world.clock.advance(100_000)
    with pytest.raises(IllegalTransition, match="is ready"):
        force_deletion(balanced.world.services, balanced.id, USER, "r")


def test_what_may_be_left_is_named(blocked: BalancedWorld) -> None:
    services, cluster = blocked.world.services, blocked.cluster
    blocked.world.clock.advance(900)
    forced = force_deletion(services, "demo", USER, "r")
    assert forced["id"] == cluster.id
    assert forced["remaining"] == [
        f"network network-{cluster.id} in us-east-1 of cloud account 1",
        f"keycloak client {cluster.client_id}",
    ]
    assert services.store.get(Cluster, cluster.id) is None
    assert services.store.get(Name, f"cluster/{cluster.name}") is None
    assert [line for line in every(services.store, Resource) if line.state != "gone"] == []
    operation = services.store.get(Operation, forced["operation_id"])
    assert operation is not None
    assert operation.status == "succeeded"
    (message,) = blocked.messages("DeletionForced")
    assert f"network network-{cluster.id}" in message
    (audit,) = [record for record in every(services.store, AuditRecord) if record.action == "ForceDeleteCluster"]
    assert f"network network-{cluster.id}" in audit.detail
    assert f"network-{cluster.id}" in blocked.provider.things, "nothing was removed from the cloud"
    with pytest.raises(NotFound):
        force_deletion(services, cluster.id, USER, "r")


def test_a_worker_that_comes_late_finds_nothing_to_do(blocked: BalancedWorld) -> None:
    from stockyard.errors import Fenced
    from stockyard.operations.clusters.phases import RUNNER
    from stockyard.operations.engine.advance import Fence
    from stockyard.operations.engine.run_phase import run_phase

    fence = Fence.of(blocked.cluster)
    blocked.world.clock.advance(900)
    force_deletion(blocked.world.services, blocked.id, USER, "r")
    with pytest.raises(Fenced):
        run_phase(RUNNER, blocked.world.services, fence, "network")
