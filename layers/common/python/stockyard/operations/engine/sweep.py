"""The sweep of operations: retry blocked deletions, and close what a lost workflow has left running."""

from __future__ import annotations

from stockyard.domain.records import Operation
from stockyard.lifecycle.change import S
from stockyard.lifecycle.operation import execution_name, started_at
from stockyard.lifecycle.procedure import BLOCK
from stockyard.operations.engine.advance import WORKFLOW_ACTOR, Fence, commit
from stockyard.operations.engine.fail import fail
from stockyard.operations.engine.runner import Runner
from stockyard.operations.services import Services

RETRIED, CLOSED = "retried", "closed"
LOST = {"Error": "ExecutionLost", "Cause": "The workflow ended without an answer."}
CONTINUED = "continued"
LONG_SECONDS = 10_800
"""No document that fails by itself lets a phase last so long; one whose history or whose time has come to its end
does."""


def sweep_operation(runner: Runner[S], services: Services, subject: S) -> str | None:
    """Bring a subject back to work that should be worked on and that no execution works on. Says what was done;
    None for nothing."""
    operation = services.store.get(Operation, subject.operation_id) if subject.operation_id else None
    if operation is None or operation.status != "running":
        return None
    procedure = runner.procedure(services, subject, operation.kind)
    age = services.seconds_since(operation.updated_at)
    stuck = age > services.settings.stuck_seconds
    blocked = operation.error is not None and age > services.settings.retry_deletion_seconds
    again = procedure.on_failure == BLOCK
    waits = not (again and blocked)
    if waits and (not stuck or services.workflows.running(procedure.workflow, execution_name(operation))):
        return None
    if again:
        commit(services, WORKFLOW_ACTOR, runner.moves.retry(subject, operation, procedure, services.now()))
        return RETRIED
    if _may_go_on(runner, services, subject, operation):
        commit(services, WORKFLOW_ACTOR, runner.moves.hand_over(subject, operation, procedure, services.now()))
        return CONTINUED
    fail(runner, services, Fence.of(subject), LOST)
    return CLOSED


def _may_go_on(runner: Runner[S], services: Services, subject: S, operation: Operation) -> bool:
    """Whether the next execution goes on in place of one that is lost: a phase has lasted for long, as only one does
    that was looked at again and again, and it may last longer."""
    _, phase = runner.failed_phase(services, subject, operation)
    age = services.seconds_since(started_at(operation, phase.name, services.now()))
    return LONG_SECONDS <= age <= runner.limit(services, subject, phase)
