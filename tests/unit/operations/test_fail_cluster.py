"""The end of a compensation that does not end by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stockyard.domain.records import Operation
from stockyard.errors import VendorQuotaExceeded, VendorRefused
from stockyard.lifecycle import phases
from stockyard.operations.delete_cluster import delete_cluster
from stockyard.operations.fail_cluster import COMPENSATION_SECONDS
from stockyard.operations.ledger import lines_of
from stockyard.operations.resume_cluster import resume_cluster
from stockyard.ports import Outcome

DOCUMENT = Path(__file__).parents[3] / "stacks" / "workflows" / "provision_cluster.asl.json"


def test_a_compensation_that_does_not_end_is_given_up_and_the_reason_is_told(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.provider.faults["network"] = [VendorRefused("no such thing")]
    cluster = world.create()
    began = world.clock.now()
    with monkeypatch.context() as patched:
        patched.setattr(world.provider, "remove", lambda phase, work: Outcome(False, "in use", wait_seconds=120))
        assert world.drive(cluster, "provision_cluster") == "not_deployed"
    took = (world.clock.now() - began).total_seconds()
    limit = phases.LIMIT_SECONDS["network"] + COMPENSATION_SECONDS
    assert COMPENSATION_SECONDS <= took <= limit + 240
    error = world.services.store.get(Operation, cluster.operation_id).error
    assert (error.phase, error.cause, error.cause_type) == ("network", "no such thing", "VendorRefused")
    left = lines_of(world.services, cluster.id, "network")
    assert len(left) == 1
    assert "network main" in error.hint
    assert "deleting the cluster removes it" in error.hint
    deleting = delete_cluster(world.services, cluster.id, "ann")
    assert world.drive(deleting, "delete_cluster") == "gone"
    assert world.provider.things == {}
    assert lines_of(world.services, cluster.id) == []


def test_a_failure_names_the_error_behind_it(world: Any) -> None:
    world.provider.faults["network"] = [VendorQuotaExceeded("ec2 create_vpc: the limit")]
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "not_deployed"
    error = world.services.store.get(Operation, cluster.operation_id).error
    assert (error.error_type, error.cause_type) == ("ClusterCouldNotBeDeployed", "VendorQuotaExceeded")


def test_a_blocked_deletion_names_the_error_behind_it(world: Any) -> None:
    cluster = world.create()
    world.drive(cluster, "provision_cluster")
    world.provider.faults["remove network"] = [VendorRefused("not now")]
    deleting = delete_cluster(world.services, cluster.id, "ann")
    assert world.drive(deleting, "delete_cluster") == "blocked"
    error = world.services.store.get(Operation, deleting.operation_id).error
    assert (error.error_type, error.cause_type) == ("VendorRefused", "VendorRefused")


def test_each_attempt_has_its_own_time_to_undo(world: Any) -> None:
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


def test_the_execution_outlasts_every_phase_and_the_compensation() -> None:
    longest = sum(phases.LIMIT_SECONDS[phase] for phase in phases.CREATE_PHASES) + COMPENSATION_SECONDS
    assert json.loads(DOCUMENT.read_text(encoding="utf-8"))["TimeoutSeconds"] > longest
