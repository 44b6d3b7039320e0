"""The legal moves of a cluster: pure functions from (records, what was seen, now) to a change.

::

    accepting ──> preparing ──> ready        accepting ──> undoing ──> gone
                     │ ▲          │
               failed┘ └resume    │
                 │                │
                 └──> deleting <──┘ <── preparing      deleting ──> gone

``now`` is RFC 3339 text. Nothing here reads a clock or a store.
"""

from __future__ import annotations

from dataclasses import replace

from stockyard.domain.conditions import Condition, with_condition
from stockyard.domain.records import Cluster, Operation, OperationError, PhaseRecord
from stockyard.errors import Fenced, IllegalTransition
from stockyard.lifecycle import phases
from stockyard.lifecycle.change import Change, Happening
from stockyard.lifecycle.operation import execution_name, phase_of, with_phase

MOVES: dict[str, frozenset[str]] = {
    "accepting": frozenset({"preparing", "undoing"}),
    "undoing": frozenset(),
    "preparing": frozenset({"ready", "failed", "deleting"}),
    "ready": frozenset({"deleting"}),
    "failed": frozenset({"preparing", "deleting"}),
    "deleting": frozenset(),
}


def _move(cluster: Cluster, status: str, now: str, **fields: object) -> Cluster:
    if status not in MOVES[cluster.status]:
        raise IllegalTransition(f"The cluster is {cluster.status}; it cannot become {status}.")
    changed: Cluster = replace(cluster, status=status, updated_at=now, version=cluster.version + 1, **fields)  # type: ignore[arg-type]
    return changed


def _touch(cluster: Cluster, now: str, **fields: object) -> Cluster:
    changed: Cluster = replace(cluster, updated_at=now, version=cluster.version + 1, **fields)  # type: ignore[arg-type]
    return changed


def _condition(cluster: Cluster, type: str, status: str, reason: str, message: str, now: str) -> Cluster:
    return replace(
        cluster, conditions=with_condition(cluster.conditions, Condition(type, status, reason, message, now))
    )


def take_back(cluster: Cluster, now: str) -> Cluster:
    """An acceptance that is not handed over any more: what it made is removed, then its record."""
    return _move(cluster, "undoing", now)


def prepare(cluster: Cluster, operation: Operation, now: str) -> Change:
    """An accepted cluster starts its background work."""
    conditions = tuple(
        Condition(name, "Unknown", "Pending", "Not started yet.", now)
        for name in (*phases.CONDITION_OF.values(), phases.READY)
    )
    moved = _move(
        cluster,
        "preparing",
        now,
        operation_id=operation.id,
        execution=execution_name(operation),
        phase=phases.CREATE_PHASES[0],
        lease_expires_at=None,
        conditions=conditions,
    )
    return Change(
        moved,
        operation,
        (
            Happening("Cluster", None, "preparing", "Accepted", "The cluster is being prepared."),
            Happening("Operation", None, "running", "Started", operation.kind),
        ),
        workflow="provision",
    )


def check_fence(cluster: Cluster, operation_id: str, attempt: int) -> None:
    """Raises ``Fenced`` unless the cluster belongs to this attempt of this operation."""
    if cluster.operation_id != operation_id or cluster.attempt != attempt:
        raise Fenced("Another operation owns the cluster now.")


def begin_phase(cluster: Cluster, operation: Operation, phase: str, now: str) -> Change | None:
    """The phase starts; None when it already runs in this attempt, or when the operation has ended."""
    record = phase_of(operation, phase)
    if operation.status != "running":
        return None
    if record.state == "running" and record.attempt == operation.attempt:
        return None
    operation = with_phase(
        operation, phase, now, state="running", started_at=now, ended_at=None, attempt=operation.attempt, message=""
    )
    cluster = _touch(cluster, now, phase=phase)
    condition = phases.CONDITION_OF.get(phase)
    if condition and operation.kind == phases.CREATE_CLUSTER:
        cluster = _condition(cluster, condition, "Unknown", "InProgress", f"Phase {phase} is running.", now)
    return Change(
        cluster,
        operation,
        (Happening("Cluster", cluster.status, cluster.status, "PhaseStarted", f"Phase {phase} started."),),
    )


def note_phase(cluster: Cluster, operation: Operation, phase: str, message: str, now: str) -> Change | None:
    """The phase says where it is; None when it said so before, or when the operation has ended."""
    if operation.status != "running" or phase_of(operation, phase).message == message:
        return None
    operation = with_phase(operation, phase, now, message=message)
    return Change(_touch(cluster, now), operation)


def end_phase(
    cluster: Cluster, operation: Operation, phase: str, message: str, now: str, *, skipped: bool = False
) -> Change | None:
    """The phase is done (or ``skipped``); None when that was already recorded, or when the operation has ended."""
    if operation.status != "running" or phase_of(operation, phase).state in ("succeeded", "skipped"):
        return None
    state = "skipped" if skipped else "succeeded"
    operation = with_phase(operation, phase, now, state=state, ended_at=now, message=message)
    cluster = _touch(cluster, now)
    condition = phases.CONDITION_OF.get(phase)
    if condition and operation.kind == phases.CREATE_CLUSTER:
        reason = "Skipped" if skipped else "Succeeded"
        cluster = _condition(cluster, condition, "True", reason, message or f"Phase {phase} is done.", now)
    text = f"Phase {phase} was skipped." if skipped else f"Phase {phase} is done."
    return Change(
        cluster,
        operation,
        (Happening("Cluster", cluster.status, cluster.status, "PhaseSkipped" if skipped else "PhaseDone", text),),
    )


def become_ready(cluster: Cluster, operation: Operation, now: str) -> Change | None:
    """The last phase of a creation; None when the cluster is ready already."""
    if cluster.status == "ready":
        return None
    operation = with_phase(operation, "complete", now, state="succeeded", ended_at=now)
    operation = replace(operation, status="succeeded", error=None)
    cluster = _move(cluster, "ready", now, phase=None)
    cluster = _condition(cluster, phases.READY, "True", "Ready", "The cluster is ready.", now)
    return Change(
        cluster,
        operation,
        (
            Happening("Cluster", "preparing", "ready", "Ready", "The cluster is ready."),
            Happening("Operation", "running", "succeeded", "Succeeded", operation.kind),
        ),
    )


def fail(cluster: Cluster, operation: Operation, error: OperationError, now: str) -> Change | None:
    """A creation failed for good; None when that was already recorded."""
    if operation.status == "failed":
        return None
    operation = with_phase(operation, error.phase, now, state="failed", ended_at=now, message=error.cause)
    operation = replace(operation, status="failed", error=error)
    cluster = _move(cluster, "failed", now, phase=None)
    condition = phases.CONDITION_OF.get(error.phase)
    if condition:
        cluster = _condition(cluster, condition, "False", error.error_type, error.cause, now)
    message = f"Phase {error.phase} failed: {error.cause}"
    cluster = _condition(cluster, phases.READY, "False", error.error_type, message, now)
    return Change(
        cluster,
        operation,
        (
            Happening("Cluster", "preparing", "failed", error.error_type, message),
            Happening("Operation", "running", "failed", error.error_type, message),
        ),
    )


def resume(cluster: Cluster, operation: Operation, now: str) -> Change:
    """A person asks a failed creation to go on, with the next attempt, from the phase that failed."""
    if cluster.status != "failed" or operation.error is None:
        raise IllegalTransition(f"The cluster is {cluster.status}; only a failed operation can be resumed.")
    start = phases.resumed_at(operation.error.phase)
    order = phases.PHASES[operation.kind]
    waiting = set(order[order.index(start) :])
    records = tuple(PhaseRecord(p.name, attempt=p.attempt) if p.name in waiting else p for p in operation.phases)
    attempt = operation.attempt + 1
    operation = replace(
        operation,
        status="running",
        error=None,
        phases=records,
        attempt=attempt,
        updated_at=now,
        version=operation.version + 1,
    )
    cluster = _move(cluster, "preparing", now, phase=start, attempt=attempt, execution=execution_name(operation))
    cluster = _condition(cluster, phases.READY, "Unknown", "Resumed", f"Resumed at phase {start}.", now)
    return Change(
        cluster,
        operation,
        (
            Happening("Cluster", "failed", "preparing", "Resumed", f"Resumed at phase {start}."),
            Happening("Operation", "failed", "running", "Resumed", f"Attempt {attempt} from phase {start}."),
        ),
        workflow="provision",
        from_phase=start,
    )


def start_deletion(cluster: Cluster, current: Operation | None, operation: Operation, now: str) -> Change:
    """A person asks for the deletion. A creation that still runs is closed: its workers are fenced off."""
    closed = None
    if current is not None and current.status == "running":
        error = OperationError(
            "ClusterCouldNotBeDeployed",
            cluster.phase or "account",
            "The cluster was deleted while it was being created.",
            "Create it again if it is still wanted.",
        )
        closed = replace(current, status="failed", error=error, updated_at=now, version=current.version + 1)
    before = cluster.status
    cluster = _move(
        cluster,
        "deleting",
        now,
        phase=phases.DELETE_PHASES[0],
        operation_id=operation.id,
        generation=cluster.generation + 1,
        attempt=1,
        remaining=(),
    )
    cluster = _condition(cluster, phases.READY, "False", "Deleting", "The cluster is being deleted.", now)
    return Change(
        cluster,
        operation,
        (
            Happening("Cluster", before, "deleting", "DeletionRequested", "The cluster is being deleted."),
            Happening("Operation", None, "running", "Started", operation.kind),
        ),
        workflow="delete",
        closed=closed,
    )


def block_deletion(
    cluster: Cluster, operation: Operation, error: OperationError, remaining: tuple[str, ...], now: str
) -> Change:
    """A deletion cannot go on for now: say what is left and why. It stays ``deleting`` and is tried again."""
    operation = with_phase(operation, error.phase, now, state="failed", ended_at=now, message=error.cause)
    operation = replace(operation, error=error)
    cluster = _touch(cluster, now, remaining=remaining)
    cluster = _condition(cluster, phases.DELETED, "False", error.error_type, f"{error.cause} {error.hint}".strip(), now)
    message = f"Phase {error.phase} could not finish: {error.cause} Left: {', '.join(remaining) or 'nothing known'}."
    return Change(cluster, operation, (Happening("Cluster", "deleting", "deleting", "DeletionBlocked", message),))


def retry_deletion(cluster: Cluster, operation: Operation, now: str) -> Change:
    """A blocked deletion starts over with its next attempt; what is gone already is skipped quickly."""
    if cluster.status != "deleting":
        raise IllegalTransition(f"The cluster is {cluster.status}, not deleting.")
    attempt = operation.attempt + 1
    records = tuple(PhaseRecord(p.name, attempt=p.attempt) for p in operation.phases)
    operation = replace(
        operation, phases=records, attempt=attempt, error=None, updated_at=now, version=operation.version + 1
    )
    cluster = _touch(cluster, now, attempt=attempt, phase=phases.DELETE_PHASES[0])
    return Change(
        cluster,
        operation,
        (Happening("Cluster", "deleting", "deleting", "DeletionRetried", f"Attempt {attempt}."),),
        workflow="delete",
    )


def finish_deletion(cluster: Cluster, operation: Operation, now: str) -> Change:
    """The cluster is gone; its record goes with this change."""
    operation = with_phase(operation, "forget", now, state="succeeded", ended_at=now)
    operation = replace(operation, status="succeeded", error=None)
    return Change(
        _touch(cluster, now, phase=None),
        operation,
        (
            Happening("Cluster", "deleting", None, "Deleted", "The cluster is gone."),
            Happening("Operation", "running", "succeeded", "Succeeded", operation.kind),
        ),
    )
