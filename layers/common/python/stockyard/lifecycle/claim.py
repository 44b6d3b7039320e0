"""The legal moves of a node claim: pure functions from (records, what was seen, now) to a change.

::

    Pending ──bind──> Pending ──machine joined──> Available ──┐
       ▲                 │ │                        │         ├──> deleting ──> gone
       │                 │ │                   machine gone   │
       │                 │ │                        ▼         │
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
from stockyard.lifecycle.drift import AS_LAUNCHED, AS_LAUNCHED_TEXT
from stockyard.lifecycle.operation import phase_of, with_phase

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


def bind(claim: NodeClaim, placement: Placement, now: str) -> tuple[NodeClaim, Happening]:
    """The scheduler found a node type: the work starts. ``IllegalTransition`` unless the claim waits for one.

    The operation is left alone, so that many claims fit one transaction; the first phase to run says for it that the
    scheduling is done.
    """
    if claim.due_at is None or claim.deleting or claim.phase != PENDING or claim.operation_id is None:
        raise IllegalTransition("The claim does not wait for a node type.")
    text = f"Placed on {placement.type}."
    claim = _touch(
        claim,
        now,
        placement=replace(placement, attempt=claim.attempt),
        type_ref=placement.type,
        due_at=None,
        reason="",
        message="",
        execution=f"{claim.operation_id}-{claim.attempt}",
    )
    claim = _condition(claim, phases.SCHEDULED, "True", "Placed", text, now)
    return claim, Happening("NodeClaim", PENDING, PENDING, "Scheduled", text)


def wait(claim: NodeClaim, reason: str, message: str, now: str) -> NodeClaim | None:
    """No node type fits for now; None when that was already said. It stays due."""
    if claim.reason == reason and claim.message == message:
        return None
    changed = _touch(claim, now, reason=reason, message=message)
    return _condition(changed, phases.SCHEDULED, "False", reason, message, now)


def told_to_wait(claim: NodeClaim) -> Happening:
    """What is told of a claim for which nothing fits."""
    return Happening("NodeClaim", PENDING, PENDING, claim.reason, claim.message)


def _started(operation: Operation, phase: str, now: str) -> str:
    record = phase_of(operation, phase)
    return record.started_at if record.attempt == operation.attempt and record.started_at else now


def _scheduled(claim: NodeClaim, operation: Operation, now: str) -> Operation:
    """The operation of a placed claim with its scheduling recorded as done; see ``bind``."""
    if operation.kind != phases.CREATE_NODE or claim.placement is None:
        return operation
    if phase_of(operation, phases.SCHEDULE).state == "succeeded":
        return operation
    done: dict[str, object] = {"state": "succeeded", "ended_at": claim.placement.decided_at}
    done |= {"message": f"Placed on {claim.placement.type}.", "attempt": operation.attempt}
    changed = with_phase(operation, phases.SCHEDULE, now, started_at=claim.created_at, **done)
    return replace(changed, version=operation.version)


def undone(claim: NodeClaim, operation: Operation) -> str:
    """The phase that is being done: the first that is not over. A claim that is placed has been scheduled."""
    over = {phases.SCHEDULE} if claim.placement is not None else set()
    left = (one.name for one in operation.phases if one.state not in ("succeeded", "skipped") and one.name not in over)
    return next(left, operation.phases[-1].name)


def note_phase(claim: NodeClaim, operation: Operation, phase: str, message: str, now: str) -> ClaimChange | None:
    """The phase goes on and says where it is; None when it said so before, or when the operation has ended."""
    record = phase_of(operation, phase)
    if operation.status != "running" or (record.state == "running" and record.message == message):
        return None
    fields: dict[str, object] = {"state": "running", "message": message, "attempt": operation.attempt}
    operation = with_phase(
        _scheduled(claim, operation, now), phase, now, started_at=_started(operation, phase, now), **fields
    )
    return ClaimChange(_touch(claim, now), operation)


def end_phase(
    claim: NodeClaim, operation: Operation, phase: str, message: str, now: str, fields: Mapping[str, object]
) -> ClaimChange | None:
    """The phase is done; ``fields`` are what it learned of the claim. None when that was already recorded."""
    record = phase_of(operation, phase)
    if operation.status != "running" or record.state in ("succeeded", "skipped"):
        return None
    started = _started(operation, phase, now)
    done: dict[str, object] = {"state": "succeeded", "ended_at": now, "message": message}
    operation = _scheduled(claim, operation, now)
    operation = with_phase(operation, phase, now, started_at=started, attempt=operation.attempt, **done)
    claim = _touch(claim, now, **fields)
    happenings: tuple[Happening, ...] = ()
    if phase == phases.MACHINE_PHASE:
        claim = _condition(claim, phases.PROVISIONED, "True", "Launched", message or "The machine runs.", now)
        claim = _condition(claim, phases.NOT_DRIFTED, "True", AS_LAUNCHED, AS_LAUNCHED_TEXT, now)
        happenings = (Happening("NodeClaim", claim.phase, claim.phase, "Provisioned", message or "The machine runs."),)
    elif phase == "register":
        text = f"Node {claim.node_name} has joined."
        claim = _condition(claim, phases.JOINED, "True", "Joined", text, now)
        happenings = (Happening("NodeClaim", claim.phase, claim.phase, "Joined", text),)
    return ClaimChange(claim, operation, happenings)


def launched(placement: Placement, facts: Mapping[str, str]) -> Placement:
    """The placement as the launch made it true: which of the options it became, and where.

    One that became another type than was counted takes no place any more.
    """
    name, capacity_type = facts.get("type", placement.type), facts.get("capacity_type", placement.capacity_type)
    option = next((o for o in placement.options if (o["type"], o["capacity_type"]) == (name, capacity_type)), None)
    zones = (facts["zone"],) if facts.get("zone") else placement.zones
    known = {"usd_hour": option["usd_hour"], "cost": option["cost"]} if option else {}
    counted = placement.counted and name == placement.type
    return replace(placement, type=name, capacity_type=capacity_type, zones=zones, counted=counted, **known)


def become_available(claim: NodeClaim, operation: Operation, power: str, now: str) -> ClaimChange | None:
    """The last phase of a creation; None when it was done before. ``power`` as it was observed, if it was."""
    if claim.phase == AVAILABLE or operation.status != "running":
        return None
    operation = with_phase(
        operation, "initialize", now, state="succeeded", ended_at=now, attempt=operation.attempt, message=""
    )
    operation = replace(operation, status="succeeded", error=None)
    claim = _touch(claim, now, phase=AVAILABLE, reason="", message="", power_observed=power)
    return ClaimChange(
        claim,
        operation,
        (
            Happening("NodeClaim", PENDING, AVAILABLE, "Available", f"Node {claim.node_name} is available."),
            Happening("Operation", "running", "succeeded", "Succeeded", operation.kind),
        ),
    )


def start_power(claim: NodeClaim, current: Operation | None, operation: Operation, wish: str, now: str) -> ClaimChange:
    """A person switches the machine. ``IllegalTransition`` unless the node is there and nothing else works on it."""
    if claim.phase != AVAILABLE or claim.deleting:
        state = "being deleted" if claim.deleting else claim.phase
        raise IllegalTransition(f"The claim is {state}; only an available node can be switched.")
    if current is not None and current.status == "running":
        raise IllegalTransition(f"Operation {current.id} is still at work on the node.")
    claim = _touch(claim, now, operation_id=operation.id, generation=claim.generation + 1, attempt=1, power_wish=wish)
    return ClaimChange(
        claim,
        operation,
        (
            Happening("NodeClaim", AVAILABLE, AVAILABLE, "PowerRequested", f"Power: {wish}."),
            Happening("Operation", None, "running", "Started", operation.kind),
        ),
        workflow="power_node",
    )


def end_power(claim: NodeClaim, operation: Operation, observed: str, now: str) -> ClaimChange | None:
    """The machine is as it was wished to be; None when that was already recorded."""
    if operation.status != "running":
        return None
    operation = with_phase(
        operation, "power", now, state="succeeded", started_at=_started(operation, "power", now), ended_at=now
    )
    operation = replace(operation, status="succeeded", error=None)
    lasting = claim.power if claim.power_wish in ("Reboot", "") else claim.power_wish
    text = f"Power: {claim.power_wish} is done."
    claim = _touch(claim, now, power=lasting, power_observed=observed, power_wish="")
    return ClaimChange(
        claim,
        operation,
        (
            Happening("NodeClaim", AVAILABLE, AVAILABLE, "PowerChanged", text),
            Happening("Operation", "running", "succeeded", "Succeeded", operation.kind),
        ),
    )


def fail_power(claim: NodeClaim, operation: Operation, error: OperationError, now: str) -> ClaimChange | None:
    """The machine could not be switched; the node stays what it is. None when that was already recorded."""
    if operation.status != "running":
        return None
    operation = with_phase(operation, error.phase, now, state="failed", ended_at=now, message=error.cause)
    operation = replace(operation, status="failed", error=error)
    message = f"Power: {claim.power_wish} failed: {error.cause}"
    return ClaimChange(
        _touch(claim, now, power_wish=""),
        operation,
        (
            Happening("NodeClaim", claim.phase, claim.phase, error.error_type, message),
            Happening("Operation", "running", "failed", error.error_type, message),
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


def fail(
    claim: NodeClaim, operation: Operation, error: OperationError, now: str, *, placeless: bool
) -> ClaimChange | None:
    """The creation failed for good; None when that was already recorded. ``placeless``: its place is given back."""
    if operation.status != "running":
        return None
    operation = with_phase(
        _scheduled(claim, operation, now), error.phase, now, state="failed", ended_at=now, message=error.cause
    )
    operation = replace(operation, status="failed", error=error)
    placement = claim.placement
    if placeless and placement is not None:
        placement = replace(placement, counted=False)
    claim = _touch(
        claim, now, phase=FAILED, reason=error.error_type, message=error.cause, due_at=None, placement=placement
    )
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
            undone(claim, current),
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


def at_once(started: ClaimChange, finished: ClaimChange) -> ClaimChange:
    """A deletion that is over as soon as it is asked for: both in one change, without an execution."""
    told = (*started.happenings[:1], *finished.happenings[:1], *started.happenings[1:], *finished.happenings[1:])
    operation = replace(finished.operation, version=started.operation.version)
    return ClaimChange(finished.claim, operation, told, closed=started.closed)
