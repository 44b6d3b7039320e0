"""Ends of earlier attempts stay with their operation: each resume adds one, the oldest go first, and success keeps
them."""

from __future__ import annotations

from dataclasses import replace

from local.testing.memory_store import MemoryRegistry
from stockyard.domain.operation_records import MOST_FAILURES
from stockyard.domain.records import Cluster, OperationError
from stockyard.domain.values import ids, times
from stockyard.domain.views import operation_view
from stockyard.lifecycle.change import Failure
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.operation import new_operation
from tests.harness.worlds.memory import FixedClock
from tests.harness.worlds.ports import memory_services

ERROR = OperationError("ProvisioningFailed", "network", "no room, 1", "Try another zone.", "VendorQuotaExceeded")


def test_each_resume_keeps_how_the_attempt_before_ended() -> None:
    clock = FixedClock()
    services = memory_services(MemoryRegistry(), clock)
    now = times.to_text(services.clock.now())
    cluster = Cluster(
        services.new_id(ids.CLUSTER), "demo", "", "k8s", "aws", 1, "demo-1", "accepting", {}, now, now, operation_id="x"
    )
    creation = services.procedure("create_cluster")
    operation = new_operation(services.new_id(ids.OPERATION), creation, cluster, "user:ann", now)
    change = MOVES.prepare(cluster, operation, creation, now)
    for attempt in range(1, MOST_FAILURES + 3):
        later = times.to_text(clock.advance(60))
        change = MOVES.begin_phase(change.subject, change.operation, creation.phase("network"), later)
        error = replace(ERROR, cause=f"no room, {attempt}")
        failure = MOVES.fail(change.subject, change.operation, Failure(creation, error), later)
        assert failure is not None
        assert len(failure.operation.failures) == min(attempt - 1, MOST_FAILURES), "what has just failed is its error"
        change = MOVES.resume(failure.subject, failure.operation, creation, times.to_text(clock.advance(60)))
        last = change.operation.failures[-1]
        assert (last.attempt, last.failed_at, last.phase, last.cause) == (attempt, later, "network", error.cause)
        assert (last.error_type, last.hint, last.cause_type) == (error.error_type, error.hint, error.cause_type)
        assert change.operation.error is None
    assert [each.attempt for each in change.operation.failures] == list(range(3, MOST_FAILURES + 3))
    ready = MOVES.become_ready(change.subject, change.operation, "complete", now)
    assert ready is not None
    failures = operation_view(ready.operation, 100)["failures"]
    assert len(failures) == MOST_FAILURES
    assert failures[-1]["cause"] == f"no room, {MOST_FAILURES + 2}"
