"""Failed operations on a cluster: their causes, and compensations that do not end by themselves."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.records import Event, Operation
from stockyard.errors import VendorQuotaExceeded, VendorRefused
from stockyard.lifecycle.phases import CREATE_CLUSTER, PROCEDURES, procedure_of
from stockyard.operations.clusters.changes.resume import resume_cluster
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.engine.step import COMPENSATION_SECONDS
from stockyard.operations.listing import every
from stockyard.ports import Outcome

CREATION = procedure_of(PROCEDURES, CREATE_CLUSTER)


def test_endless_compensation_is_given_up_with_reason(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world.provider.faults["network"] = [VendorRefused("no such thing")]
    cluster = world.create()
    began = world.clock.now()
    with monkeypatch.context() as patched:
        patched.setattr(world.provider, "remove", lambda phase, work: Outcome(False, "in use", wait_seconds=120))
        assert world.drive(cluster, "provision_cluster") == "not_deployed"
    took = (world.clock.now() - began).total_seconds()
    limit = CREATION.phase("network").limit_seconds + COMPENSATION_SECONDS
    assert COMPENSATION_SECONDS <= took <= limit + 240
    error = world.services.store.get(Operation, cluster.operation_id).error
    assert (error.phase, error.cause, error.cause_type) == ("network", "no such thing", "VendorRefused")
    remaining = lines_of(world.services, cluster.id, "network")
    assert len(remaining) == 1
    assert "network main" in error.hint
    assert "deleting the cluster removes it" in error.hint
    deleting = delete_cluster(world.services, cluster.id, "ann")
    assert world.drive(deleting, "delete_cluster") == "gone"
    assert world.provider.things == {}
    assert lines_of(world.services, cluster.id) == []


def test_failure_names_its_cause(world: Any) -> None:
    world.provider.faults["network"] = [VendorQuotaExceeded("ec2 create_vpc: the limit")]
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "not_deployed"
    error = world.services.store.get(Operation, cluster.operation_id).error
    assert (error.error_type, error.cause_type) == ("ClusterCouldNotBeDeployed", "VendorQuotaExceeded")


def test_blocked_deletion_names_its_cause(world: Any) -> None:
    cluster = world.create()
    world.drive(cluster, "provision_cluster")
    world.provider.faults["remove network"] = [VendorRefused("not now")]
    deleting = delete_cluster(world.services, cluster.id, "ann")
    assert world.drive(deleting, "delete_cluster") == "blocked"
    error = world.services.store.get(Operation, deleting.operation_id).error
    assert (error.error_type, error.cause_type) == ("VendorRefused", "VendorRefused")
    (blocked,) = [event for event in every(world.services.store, Event) if event.reason == "DeletionBlocked"]
    assert "could not finish: not now. Left: " in blocked.message
    assert blocked.message.endswith(".")


def test_each_attempt_has_own_compensation_limit(world: Any) -> None:
    world.provider.faults["network"] = [VendorRefused("one"), VendorRefused("two")]
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "not_deployed"
    world.clock.advance(10 * COMPENSATION_SECONDS)
    resumed = resume_cluster(world.services, cluster.id, "ann")
    remove, answers = world.provider.remove, [Outcome(False, "in use", wait_seconds=60)]
    world.provider.remove = lambda phase, work: answers.pop() if answers else remove(phase, work)
    assert world.drive(resumed, "provision_cluster") == "not_deployed"
    assert answers == []
    assert lines_of(world.services, cluster.id, "network") == []
    assert "Not undone" not in world.services.store.get(Operation, cluster.operation_id).error.hint


def test_execution_timeout_covers_phases_and_compensation() -> None:
    longest = sum(phase.limit_seconds for phase in CREATION.phases) + COMPENSATION_SECONDS
    assert CREATION.timeout_seconds > longest
