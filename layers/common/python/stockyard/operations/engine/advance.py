"""Carries a lifecycle decision out: load, check the fence, decide, write with conditions; again after a lost race."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from typing import Generic, ParamSpec, TypeVar

from stockyard.domain.records import Operation, Outbox
from stockyard.domain.values import ids, times
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import Conflict, Fenced
from stockyard.lifecycle.change import Change, S, Subject
from stockyard.lifecycle.operation import execution_name, is_handed_over, phase_of
from stockyard.lifecycle.procedure import Procedure
from stockyard.metrics import OPERATIONS_FAILED, PHASE_SECONDS
from stockyard.operations.engine.followers import follower_writes
from stockyard.operations.engine.tell import in_one_item, tell
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace, Write

P = ParamSpec("P")
T = TypeVar("T")

TRIES = 8
WORKFLOW_ACTOR = "stockyard"

Loaded = tuple[S, Operation]
Decide = Callable[[S, Operation], Change[S] | None]
Extra = Sequence[Write] | Callable[[S], Sequence[Write]]
"""Writes that go with a change, or how they follow from the subject as it stands when the change is decided."""


@dataclass(frozen=True, slots=True)
class Fence(Generic[S]):
    """The attempt of an operation on whose behalf something is done to a subject. ``record`` is the subject's class."""

    record: type[S]
    subject_id: str
    operation_id: str
    attempt: int
    execution: str | None = None
    """The name of the execution that acts, so that one that has handed the attempt over does nothing more; None where
    it is somebody else."""

    @classmethod
    def of(cls, subject: S) -> Fence[S]:
        """The attempt that the subject belongs to."""
        return cls(type(subject), subject.id, str(subject.operation_id), subject.attempt)


def load(services: Services, fence: Fence[S]) -> Loaded[S]:
    """The subject and operation of a fence. ``Fenced`` when the attempt is no longer the current one."""
    subject, operation = services.store.get_together((fence.record, fence.subject_id), (Operation, fence.operation_id))
    if subject is None or operation is None:
        raise Fenced(f"The {fence.record.__name__} or its operation is gone.")
    if subject.operation_id != fence.operation_id or subject.attempt != fence.attempt:
        raise Fenced(f"Another operation or attempt owns the {fence.record.__name__} now.")
    if fence.execution is not None and is_handed_over(operation, fence.execution):
        raise Fenced(f"A later execution works on the {fence.record.__name__} now.")
    return subject, operation


def advance(
    services: Services, fence: Fence[S], decide: Decide[S], extra: Extra[S] = (), loaded: Loaded[S] | None = None
) -> S:
    """Apply ``decide`` to the current records. Returns the subject as it then stands.

    ``loaded`` are the records as ``load`` gave them a while ago, tried before they are read again: what has changed
    meanwhile refuses the write. ``extra`` is written only with a change. Raises ``Fenced`` when another attempt or
    operation owns the subject, ``Conflict`` after many lost races.
    """
    for _ in range(TRIES):
        subject, operation = loaded or load(services, fence)
        loaded = None
        change = decide(subject, operation)
        if change is None:
            return subject
        try:
            written = commit(services, WORKFLOW_ACTOR, change, extra if isinstance(extra, Sequence) else extra(subject))
        except Conflict:
            continue
        measure(services, operation, change.operation)
        return written
    raise Conflict(f"The {fence.record.__name__} changes too often to be written.")


def until_written(action: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Runs a use case without a fence again when somebody else wrote first; after many times ``Conflict`` says so."""

    def decorate(use_case: Callable[P, T]) -> Callable[P, T]:
        @wraps(use_case)
        def tried(*args: P.args, **kwargs: P.kwargs) -> T:
            for _ in range(TRIES):
                with suppress(Conflict):
                    return use_case(*args, **kwargs)
            raise Conflict(f"The {action}. Send the request again.")

        return tried

    return decorate


def commit(services: Services, actor: str, change: Change[S], extra: Sequence[Write] = ()) -> S:
    """Write a change of existing records, with its events, in one transaction."""
    subject, operation, writes = change_writes(services, actor, change)
    services.store.commit(Replace(subject), Replace(operation), *writes, *extra)
    return subject


def change_writes(services: Services, actor: str, change: Change[S]) -> tuple[S, Operation, list[Write]]:
    """The records with their sequences raised, and the writes of all events and the execution start of a change."""
    subject, operation = change.subject, change.operation
    writes: list[Write] = []
    for transition in change.transitions:
        if transition.about == "Operation":
            operation = replace(operation, sequence=operation.sequence + 1)
            writes += tell(services, actor, operation, transition)
        else:
            subject = replace(subject, sequence=subject.sequence + 1)
            writes += [*tell(services, actor, subject, transition), *follower_writes(services, operation, transition)]
    if change.closed is not None:
        closed = replace(change.closed[0], sequence=change.closed[0].sequence + 1)
        writes += [Replace(closed), *tell(services, actor, closed, change.closed[1])]
    if change.workflow is not None:
        name = execution_name(operation)
        writes.append(start_message(services, change.workflow, subject, name, change.from_phase))
    return subject, operation, in_one_item(writes)


def start_message(services: Services, procedure: Procedure, subject: Subject, name: str, from_phase: str = "") -> Write:
    """The write of the outbox item that starts the execution ``name`` of the attempt that the subject belongs to. The
    name makes a second start the same start."""
    value = input_of(services, procedure, subject, from_phase)
    payload = {"workflow": procedure.workflow, "name": name, "input": value}
    return Create(Outbox(services.new_id(ids.OUTBOX), "workflow", payload, services.now()))


def input_of(services: Services, procedure: Procedure, subject: Subject, from_phase: str = "") -> dict[str, object]:
    """The input of an execution of the attempt that the subject belongs to."""
    return {
        "tenant": services.tenant,
        f"{procedure.subject}_id": subject.id,
        "operation_id": subject.operation_id,
        "attempt": subject.attempt,
        "from_phase": from_phase,
    }


def measure(services: Services, before: Operation, after: Operation) -> None:
    """Measure what has become of an operation by a change that was written."""

    def keys(phase: str) -> dict[str, str]:
        return {"tenant": services.tenant, "operation_id": after.id, "operation_kind": after.kind, "phase": phase}

    for new in after.phases:
        if new.state == "succeeded" != phase_of(before, new.name).state and new.started_at and new.ended_at:
            seconds = (times.from_text(new.ended_at) - times.from_text(new.started_at)).total_seconds()
            services.telemetry.measure("phase ended", PHASE_SECONDS, seconds, attempt=after.attempt, **keys(new.name))
    error = after.error
    if error is not None and error != before.error and after.status != "cancelled":
        services.telemetry.measure(
            "operation failed", OPERATIONS_FAILED, 1, attempt=after.attempt, error=error.cause_type, **keys(error.phase)
        )
