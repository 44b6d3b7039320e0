"""The sweep of operations: retry blocked deletions, and close what a lost workflow has left running."""

from __future__ import annotations

from datetime import timedelta

from stockyard.domain import times
from stockyard.domain.records import Operation
from stockyard.lifecycle.change import S
from stockyard.lifecycle.operation import execution_name
from stockyard.lifecycle.phases import BLOCK
from stockyard.operations.engine.advance import WORKFLOW_ACTOR, Fence, commit
from stockyard.operations.engine.fail import fail
from stockyard.operations.engine.runner import Runner
from stockyard.operations.services import Services

NOTHING, RETRIED, CLOSED = "nothing", "retried", "closed"
LOST = {"Error": "ExecutionLost", "Cause": "The workflow ended without an answer."}


def sweep_operation(runner: Runner[S], services: Services, subject: S) -> str:
    """Bring a subject back to work that should be worked on and that no execution works on. Says what was done."""
    operation = services.store.get(Operation, subject.operation_id) if subject.operation_id else None
    if operation is None or operation.status != "running":
        return NOTHING
    procedure = runner.procedure(services, subject, operation.kind)
    age = services.clock.now() - times.from_text(operation.updated_at)
    stuck = age > timedelta(seconds=services.settings.stuck_seconds)
    blocked = operation.error is not None and age > timedelta(seconds=services.settings.retry_deletion_seconds)
    again = procedure.on_failure == BLOCK
    waits = not (again and blocked)
    if waits and (not stuck or services.workflows.running(procedure.workflow, execution_name(operation))):
        return NOTHING
    if again:
        commit(services, WORKFLOW_ACTOR, runner.moves.retry(subject, operation, procedure, services.now()))
        return RETRIED
    fail(runner, services, Fence(runner.record, subject.id, operation.id, subject.attempt), LOST)
    return CLOSED
