"""The legal moves of a node claim: pure functions from (records, what was seen, now) to a change.

::

    Pending ──bind──> Pending ──machine joined──> Available ──┐
       ▲                 │ │                                  ├──> deleting ──> gone
       └──capacity────── ┘ └──failed for good──> Failed ──────┘
          refused

``now`` is RFC 3339 text. Nothing here reads a clock or a store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from stockyard.domain.conditions import Condition, with_condition
from stockyard.domain.records import NodeClaim, Operation, OperationError, PhaseRecord, Placement
from stockyard.errors import Fenced, IllegalTransition
from stockyard.lifecycle import node_phases as phases
from stockyard.lifecycle.change import Happening
from stockyard.lifecycle.operation import execution_name, phase_of, with_phase

PENDING, AVAILABLE, FAILED = "Pending", "Available", "Failed"
DELETING = "Deleting"
"""What events call a claim on its way out; its phase stays what it was."""


@dataclass(frozen=True, slots=True)
class ClaimChange:
    """The new records (versions already raised) and what happened. ``workflow`` is the execution to start, if any."""

    claim: NodeClaim
    operation: Operation
    happenings: tuple[Happening, ...] = ()
    workflow: str | None = None
    closed: Operation | None = None
    """Another operation that this change ends (a creation overtaken by a deletion)."""


def _touch(claim: NodeClaim, now: str, **fields: object) -> NodeClaim:
    changed: NodeClaim = replace(claim, updated_at=now, version=claim.version + 1, **fields)  # type: ignore[arg-type]
    return changed


def _condition(claim: NodeClaim, type: str, status: str, reason: str, message: str, now: str) -> NodeClaim:
    return replace(claim, conditions=with_condition(claim.conditions, Condition(type, status, reason, message, now)))


def shown_phase(claim: NodeClaim) -> str:
    """The phase as events name it."""
    return DELETING if claim.deleting else claim.phase


def check_fence(claim: NodeClaim, operation_id: str, attempt: int) -> None:
    """Raises ``Fenced`` unless the claim belongs to this attempt of this operation."""
    if claim.operation_id != operation_id or claim.attempt != attempt:
        raise Fenced("Another operation or attempt owns the claim now.")


def accept(draft: NodeClaim, operation: Operation, now: str) -> ClaimChange:
    """A new claim waits for the scheduler, due at once."""
    conditions = tuple(Condition(name, "Unknown", "Pending", "Not yet.", now) for name in phases.READINESS)
    claim = replace(
        draft, phase=PENDING, reason="Pending", conditions=conditions, due_at=now, operation_id=operation.id
    )
    told = Happening("NodeClaim", None, PENDING, "Accepted", "The claim waits for a node type.")
    return ClaimChange(claim, operation, (told,))


def bind(claim: NodeClaim, operation: Operation, placement: Placement, now: str) -> ClaimChange:
    """The scheduler found a node type: the work starts. ``IllegalTransition`` unless the claim waits for one."""
    if claim.due_at is None or claim.deleting or claim.phase != PENDING:
        raise IllegalTransition("The claim does not wait for a node type.")
    operation = with_phase(
        operation,
        phases.SCHEDULE,
        now,
        state="succeeded",
        started_at=claim.created_at,
        ended_at=now,
        attempt=operation.attempt,
        message=f"Placed on {placement.type}.",
    )
    placement = replace(placement, attempt=claim.attempt)
    claim = _touch(
        claim,
        now,
        placement=placement,
        type_ref=placement.type,
        due_at=None,
        reason="",
        message="",
        execution=execution_name(operation),
    )
    claim = _condition(claim, phases.SCHEDULED, "True", "Placed", f"Placed on {placement.type}.", now)
    told = Happening("NodeClaim", PENDING, PENDING, "Scheduled", f"Placed on {placement.type}.")
    return ClaimChange(claim, operation, (told,), workflow="provision_node")


def wait(claim: NodeClaim, reason: str, message: str, now: str) -> NodeClaim | None:
    """No node type fits for now; None when that was already said. It stays due."""
    if claim.reason == reason and claim.message == message:
        return None
    changed = _touch(claim, now, reason=reason, message=message)
    return _condition(changed, phases.SCHEDULED, "False", reason, message, now)


def note_phase(claim: NodeClaim, operation: Operation, phase: str, message: str, now: str) -> ClaimChange | None:
    """The phase goes on and says where it is; None when it said so before, or when the operation has ended."""
    record = phase_of(operation, phase)
    if operation.status != "running" or (record.state == "running" and record.message == message):
        return None
    fields: dict[str, object] = {"state": "running", "message": message, "attempt": operation.attempt}
    started = record.started_at if record.attempt == operation.attempt and record.started_at else now
    return ClaimChange(_touch(claim, now), with_phase(operation, phase, now, started_at=started, **fields))


def end_phase(
    claim: NodeClaim, operation: Operation, phase: str, message: str, now: str, fields: Mapping[str, object]
) -> ClaimChange | None:
    """The phase is done; ``fields`` are what it learned of the claim. None when that was already recorded."""
    record = phase_of(operation, phase)
    if operation.status != "running" or record.state in ("succeeded", "skipped"):
        return None
    started = record.started_at if record.attempt == operation.attempt and record.started_at else now
    done: dict[str, object] = {"state": "succeeded", "ended_at": now, "message": message}
    operation = with_phase(operation, phase, now, started_at=started, attempt=operation.attempt, **done)
    claim = _touch(claim, now, **fields)
    happenings: tuple[Happening, ...] = ()
    if phase == phases.MACHINE_PHASE:
        claim = _condition(claim, phases.PROVISIONED, "True", "Launched", message or "The machine runs.", now)
        happenings = (Happening("NodeClaim", claim.phase, claim.phase, "Provisioned", message or "The machine runs."),)
    elif phase == "register":
        text = f"Node {claim.node_name} has joined."
        claim = _condition(claim, phases.JOINED, "True", "Joined", text, now)
        happenings = (Happening("NodeClaim", claim.phase, claim.phase, "Joined", text),)
    return ClaimChange(claim, operation, happenings)


def become_available(claim: NodeClaim, operation: Operation, now: str) -> ClaimChange | None:
    """The last phase of a creation; None when the claim is available already."""
    if claim.phase == AVAILABLE or operation.status != "running":
        return None
    operation = with_phase(
        operation, "initialize", now, state="succeeded", ended_at=now, attempt=operation.attempt, message=""
    )
    operation = replace(operation, status="succeeded", error=None)
    claim = _touch(claim, now, phase=AVAILABLE, reason="", message="")
    claim = _condition(claim, phases.NOT_DRIFTED, "True", "AsLaunched", "Type and properties are as launched.", now)
    return ClaimChange(
        claim,
        operation,
        (
            Happening("NodeClaim", PENDING, AVAILABLE, "Available", f"Node {claim.node_name} is available."),
            Happening("Operation", "running", "succeeded", "Succeeded", operation.kind),
        ),
    )


def place_again(claim: NodeClaim, operation: Operation, reason: str, message: str, now: str) -> ClaimChange:
    """What was placed cannot be had: the claim waits for the next cheapest, as the next attempt."""
    attempt = claim.attempt + 1
    records = tuple(PhaseRecord(record.name, attempt=record.attempt) for record in operation.phases)
    operation = replace(operation, phases=records, attempt=attempt, updated_at=now, version=operation.version + 1)
    claim = _touch(claim, now, attempt=attempt, placement=None, type_ref="", due_at=now, reason=reason, message=message)
    claim = _condition(claim, phases.SCHEDULED, "False", reason, message, now)
    told = Happening("NodeClaim", PENDING, PENDING, reason, message)
    return ClaimChange(claim, operation, (told,))


def fail(claim: NodeClaim, operation: Operation, error: OperationError, now: str) -> ClaimChange | None:
    """The creation failed for good; None when that was already recorded."""
    if operation.status != "running":
        return None
    operation = with_phase(operation, error.phase, now, state="failed", ended_at=now, message=error.cause)
    operation = replace(operation, status="failed", error=error)
    claim = _touch(claim, now, phase=FAILED, reason=error.error_type, message=error.cause, due_at=None)
    claim = _condition(claim, phases.CONDITION_OF[error.phase], "False", error.error_type, error.cause, now)
    message = f"Phase {error.phase} failed: {error.cause}"
    return ClaimChange(
        claim,
        operation,
        (
            Happening("NodeClaim", PENDING, FAILED, error.error_type, message),
            Happening("Operation", "running", "failed", error.error_type, message),
        ),
    )


def start_deletion(claim: NodeClaim, current: Operation | None, operation: Operation, now: str) -> ClaimChange:
    """A person, or what made the claim, gives it back. A creation that still runs is closed, its workers fenced off."""
    closed = None
    if current is not None and current.status == "running":
        error = OperationError(
            "NodeCouldNotBeProvisioned",
            next((p.name for p in current.phases if p.state not in ("succeeded", "skipped")), phases.SCHEDULE),
            "The claim was deleted while its node was being made.",
            "Create it again if it is still wanted.",
        )
        closed = replace(current, status="failed", error=error, updated_at=now, version=current.version + 1)
    before = shown_phase(claim)
    claim = _touch(
        claim,
        now,
        deleting=True,
        due_at=None,
        operation_id=operation.id,
        generation=claim.generation + 1,
        attempt=1,
        remaining=(),
    )
    claim = _condition(claim, phases.DESTROYED, "False", "Deleting", "The node is being given back.", now)
    return ClaimChange(
        claim,
        operation,
        (
            Happening("NodeClaim", before, DELETING, "DeletionRequested", "The node is being given back."),
            Happening("Operation", None, "running", "Started", operation.kind),
        ),
        workflow="delete_node",
        closed=closed,
    )


def block_deletion(
    claim: NodeClaim, operation: Operation, error: OperationError, remaining: tuple[str, ...], now: str
) -> ClaimChange:
    """A deletion cannot go on for now: say what is left and why. It is tried again."""
    operation = with_phase(operation, error.phase, now, state="failed", ended_at=now, message=error.cause)
    operation = replace(operation, error=error)
    claim = _touch(claim, now, remaining=remaining)
    text = f"{error.cause} {error.hint}".strip()
    claim = _condition(claim, phases.DESTROYED, "False", error.error_type, text, now)
    message = f"Phase {error.phase} could not finish: {error.cause} Left: {', '.join(remaining) or 'nothing known'}."
    return ClaimChange(claim, operation, (Happening("NodeClaim", DELETING, DELETING, "DeletionBlocked", message),))


def retry_deletion(claim: NodeClaim, operation: Operation, now: str) -> ClaimChange:
    """A blocked deletion starts over with its next attempt; what is gone already is skipped quickly."""
    if not claim.deleting:
        raise IllegalTransition("The claim is not being deleted.")
    attempt = operation.attempt + 1
    records = tuple(PhaseRecord(p.name, attempt=p.attempt) for p in operation.phases)
    operation = replace(
        operation, phases=records, attempt=attempt, error=None, updated_at=now, version=operation.version + 1
    )
    claim = _touch(claim, now, attempt=attempt)
    told = Happening("NodeClaim", DELETING, DELETING, "DeletionRetried", f"Attempt {attempt}.")
    return ClaimChange(claim, operation, (told,), workflow="delete_node")


def finish_deletion(claim: NodeClaim, operation: Operation, now: str) -> ClaimChange:
    """The machine is gone; the claim's record goes with this change."""
    records = tuple(
        p if p.state == "succeeded" else replace(p, state="succeeded", started_at=p.started_at or now, ended_at=now)
        for p in operation.phases
    )
    operation = replace(
        operation, status="succeeded", error=None, phases=records, updated_at=now, version=operation.version + 1
    )
    claim = _condition(_touch(claim, now), phases.DESTROYED, "True", "Gone", "The node is gone.", now)
    return ClaimChange(
        claim,
        operation,
        (
            Happening("NodeClaim", DELETING, None, "Deleted", "The node is gone."),
            Happening("Operation", "running", "succeeded", "Succeeded", operation.kind),
        ),
    )
