"""The moves that every long operation makes, whatever it is about: pure functions from records to a change.

``Moves`` is written once; a subject's module says what differs (``clusters.cluster``, ``nodes.node_claim``).
``now`` is RFC 3339 text. Nothing here reads a clock or a store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic

from stockyard.domain.operation_records import MOST_FAILURES, OperationFailure
from stockyard.domain.records import Operation, OperationError, PhaseRecord
from stockyard.domain.values.conditions import Condition, with_condition
from stockyard.domain.values.states import PhaseState, Truth
from stockyard.errors import IllegalTransition
from stockyard.lifecycle.change import Change, Failure, PhaseEnd, S, Subject, Transition
from stockyard.lifecycle.procedure import Phase, Procedure

OVER = ("succeeded", "skipped")
RESUMABLE = ("failed", "cancelled")
"""The states of an operation that a person may let go on."""
"""States of a phase that is not run again in this attempt."""
DELETING = "Deleting"
"""Reason of the condition of what is being deleted, as long as nothing blocks that."""


def new_operation(id: str, procedure: Procedure, subject: Subject, actor: str, now: str, parent: str = "") -> Operation:
    """A running operation with all its phases pending. ``parent`` is the operation that it is a part of."""
    records = tuple(PhaseRecord(name) for name in procedure.names)
    return Operation(id, procedure.kind, subject.id, "running", records, now, now, actor, subject.name, parent=parent)


def execution_name(operation: Operation, continuation: int | None = None) -> str:
    """The name of the execution that carries this attempt: a second start is the same start. ``continuation``: of the
    one that did so after so many others, the present one when None."""
    number = operation.continuation if continuation is None else continuation
    return f"{operation.id}-{operation.attempt}" + (f"_{number}" if number else "")


def is_handed_over(operation: Operation, execution: str) -> bool:
    """Whether the execution of this name has given the attempt to a later one."""
    return any(execution == execution_name(operation, number) for number in range(operation.continuation))


def _changed(operation: Operation, now: str, **fields: object) -> Operation:
    """The operation, a version on, with fields changed."""
    return replace(operation, updated_at=now, version=operation.version + 1, **fields)  # type: ignore[arg-type]


def with_phase(operation: Operation, name: str, now: str, **fields: object) -> Operation:
    """The operation, a version on, with fields of one phase changed."""
    records = {record.name: record for record in operation.phases}
    records[name] = replace(phase_of(operation, name), **fields)  # type: ignore[arg-type]
    return _changed(operation, now, phases=tuple(records.values()))


def phase_of(operation: Operation, name: str) -> PhaseRecord:
    """The record of a phase; a new one for a phase that came with a release after the operation was accepted."""
    return {record.name: record for record in operation.phases}.get(name) or PhaseRecord(name)


def progress(operation: Operation, children: Sequence[Operation] = ()) -> int:
    """Percentage of an operation that is done, 0 to 100: each phase and each child counts alike. A queued one has
    neither."""
    if operation.status == "succeeded":
        return 100
    if not operation.phases and not children:
        return 0
    done = 100 * sum(1 for record in operation.phases if record.state in OVER)
    done += sum(progress(child) for child in children)
    return done // (len(operation.phases) + len(children))


def with_child(operation: Operation, child: str, now: str) -> Operation:
    """The operation, a version on, with another operation as a part of it."""
    return _changed(operation, now, children=(*operation.children, child))


def started_at(operation: Operation, phase: str, now: str) -> str:
    """Moment when a phase was started in this attempt; ``now`` when it was not."""
    record = phase_of(operation, phase)
    return record.started_at if record.attempt == operation.attempt and record.started_at else now


def succeeded(operation: Operation, phase: str, now: str) -> Operation:
    """The operation with its last phase done, and itself."""
    fields = {"started_at": started_at(operation, phase, now), "ended_at": now, "attempt": operation.attempt}
    operation = with_phase(operation, phase, now, state="succeeded", message="", **fields)
    return replace(operation, status="succeeded", error=None)


def operation_started(operation: Operation) -> Transition:
    """Transition that tells of a new operation."""
    return Transition("Operation", None, "running", "Started", operation.kind)


def operation_succeeded(operation: Operation) -> Transition:
    """Transition that tells of an operation at its end."""
    return Transition("Operation", "running", "succeeded", "Succeeded", operation.kind)


class Moves(ABC, Generic[S]):
    """The moves of one kind of subject. What differs between the kinds comes first."""

    about: str
    """The class name of the record: events name the subject by it."""
    noun: str
    """How texts call it."""
    announces: bool = False
    """Whether the start of each phase is written down and told."""
    current_field: str = ""
    """The field that holds the name of the phase that is being done, if there is one."""
    deleting: str
    """What events call a subject on its way out."""
    gone_condition: str
    """The condition that a deletion decides."""
    leaving_condition: str
    """The condition that becomes false when a deletion begins."""
    leaving_text: str
    gone_text: str

    @abstractmethod
    def shown_status(self, subject: S) -> str:
        """The subject's status as events name it."""

    @abstractmethod
    def apply_phase_end(self, subject: S, end: PhaseEnd, now: str) -> tuple[S, tuple[Transition, ...]]:
        """Change the subject by the end of a phase, and tell of it."""

    @abstractmethod
    def failed(self, subject: S, failure: Failure, now: str) -> tuple[S, str]:
        """The subject of an operation that failed, and what is told of it."""

    @abstractmethod
    def leaving(self, subject: S, now: str, **fields: object) -> S:
        """The subject as a deletion begins. Raises ``IllegalTransition`` where none may begin."""

    @abstractmethod
    def is_leaving(self, subject: S) -> bool:
        """Whether a deletion has begun."""

    def up_to_date(self, _subject: S, operation: Operation, _now: str) -> Operation:
        """The operation with what is known of it from the subject only; its version stays."""
        return operation

    def resumed(self, subject: S, now: str, **fields: object) -> S:
        """The subject as a failed operation goes on. Raises ``IllegalTransition`` where none does."""
        return self.touch(subject, now, **fields)

    @staticmethod
    def _fence(subject: S, operation: Operation) -> dict[str, object]:
        """The fields of a subject that begins to belong to a new operation."""
        return {"operation_id": operation.id, "generation": subject.generation + 1, "attempt": 1}

    @staticmethod
    def _success(subject: S, operation: Operation, phase: str, transition: Transition, now: str) -> Change[S]:
        """The last phase of an operation is done, and the operation with it."""
        return Change(subject, succeeded(operation, phase, now), (transition, operation_succeeded(operation)))

    @staticmethod
    def in_next_execution(change: Change[S], procedure: Procedure) -> Change[S]:
        """The change, with which the next execution goes on with the attempt, at the phase that is being done. The one
        before it does nothing more."""
        subject, operation = change.subject, change.operation
        following = replace(operation, continuation=operation.continuation + 1)
        if subject.execution == execution_name(operation):
            subject = replace(subject, execution=execution_name(following))
        waiting = (record.name for record in operation.phases if record.state not in OVER)
        start = next(waiting, "") if procedure.resumable else ""
        return replace(change, subject=subject, operation=following, workflow=procedure, from_phase=start)

    # --- moves -------------------------------------------------------------------------------------------------------

    def hand_over(self, subject: S, operation: Operation, procedure: Procedure, now: str) -> Change[S]:
        """The next execution goes on with the attempt: the history of this one has become long, or it is lost."""
        operation = self.up_to_date(subject, operation, now)
        change = Change(self.touch(subject, now), _changed(operation, now))
        return self.in_next_execution(change, procedure)

    def touch(self, subject: S, now: str, **fields: object) -> S:
        """The subject, a version on, with fields changed."""
        return replace(subject, updated_at=now, version=subject.version + 1, **fields)  # type: ignore[arg-type]

    def condition(self, subject: S, type: str, status: Truth, reason: str, message: str, now: str) -> S:
        """The subject with one condition set."""
        condition = Condition(type, status, reason, message, now)
        return replace(subject, conditions=with_condition(subject.conditions, condition))

    def transition(self, before: str | None, after: str | None, reason: str, message: str) -> Transition:
        """Something to tell of the subject."""
        return Transition(self.about, before, after, reason, message)

    def current_phase(self, subject: S, operation: Operation) -> str:
        """The phase that is being done: the first that is not over, else the last."""
        records = self.up_to_date(subject, operation, operation.updated_at).phases
        return next((record.name for record in records if record.state not in OVER), records[-1].name)

    def begin_phase(self, subject: S, operation: Operation, phase: Phase, now: str) -> Change[S] | None:
        """The phase starts, and that is told. None when nothing is told of it, when it already runs in this attempt,
        and when the operation has ended."""
        record = phase_of(operation, phase.name)
        running = record.state == "running" and record.attempt == operation.attempt
        if not self.announces or running or operation.status != "running":
            return None
        fields = {"state": "running", "started_at": now, "ended_at": None, "attempt": operation.attempt, "message": ""}
        subject = self.touch(subject, now, **self._at(phase.name))
        if phase.condition:
            text = f"Phase {phase.name} is running."
            subject = self.condition(subject, phase.condition, "Unknown", "InProgress", text, now)
        status = self.shown_status(subject)
        transition = self.transition(status, status, "PhaseStarted", f"Phase {phase.name} started.")
        return Change(subject, with_phase(operation, phase.name, now, **fields), (transition,))

    def note_phase(self, subject: S, operation: Operation, phase: str, message: str, now: str) -> Change[S] | None:
        """The phase goes on and says where it is; None when it said so before, or when the operation has ended."""
        record = phase_of(operation, phase)
        if operation.status != "running" or (record.state == "running" and record.message == message):
            return None
        phase_start = started_at(operation, phase, now)
        fields: dict[str, object] = {"state": "running", "message": message, "attempt": operation.attempt}
        operation = self.up_to_date(subject, operation, now)
        return Change(self.touch(subject, now), with_phase(operation, phase, now, started_at=phase_start, **fields))

    def end_phase(
        self,
        subject: S,
        operation: Operation,
        phase: Phase,
        message: str,
        now: str,
        fields: Mapping[str, object] | None = None,
        *,
        skipped: bool = False,
    ) -> Change[S] | None:
        """The phase is done (or ``skipped``); ``fields`` are what it learned of the subject.

        None when that was already recorded, or when the operation has ended.
        """
        if operation.status != "running" or phase_of(operation, phase.name).state in OVER:
            return None
        state, phase_start = "skipped" if skipped else "succeeded", started_at(operation, phase.name, now)
        done: dict[str, object] = {"state": state, "ended_at": now, "message": message, "attempt": operation.attempt}
        operation = self.up_to_date(subject, operation, now)
        operation = with_phase(operation, phase.name, now, started_at=phase_start, **done)
        subject = self.touch(subject, now, **(fields or {}))
        subject, transitions = self.apply_phase_end(subject, PhaseEnd(phase, message, skipped), now)
        return Change(subject, operation, transitions)

    def fail(self, subject: S, operation: Operation, failure: Failure, now: str) -> Change[S] | None:
        """The operation failed for good; None when it has ended before."""
        if operation.status != "running":
            return None
        error, before = failure.error, self.shown_status(subject)
        operation = self.up_to_date(subject, operation, now)
        state: PhaseState = "skipped" if failure.cancelled else "failed"
        operation = with_phase(operation, error.phase, now, state=state, ended_at=now, message=error.cause)
        operation = replace(operation, status=failure.ends, error=error)
        subject, message = self.failed(subject, failure, now)
        subject = replace(subject, kept_until=failure.kept_until)
        transitions = (
            self.transition(before, self.shown_status(subject), failure.reason, message),
            Transition("Operation", "running", failure.ends, failure.reason, message),
        )
        return Change(subject, operation, transitions)

    def end_kept(self, subject: S, operation: Operation, now: str) -> Change[S]:
        """The machine is gone that did not come up and was kept."""
        status, text = self.shown_status(subject), "The machine that did not come up is gone."
        transition = self.transition(status, status, "KeptMachineRemoved", text)
        return Change(self.touch(subject, now, kept_until=None), _changed(operation, now), (transition,))

    def resume(
        self, subject: S, operation: Operation, procedure: Procedure, now: str, *, from_phase: str = ""
    ) -> Change[S]:
        """A person asks a failed operation to go on, with the next attempt, from the phase that its row names, or from
        ``from_phase``."""
        before = self.shown_status(subject)
        if operation.status not in RESUMABLE or operation.error is None or not procedure.resumable:
            raise IllegalTransition(f"The {self.noun} is {before}; only a failed operation can be resumed.")
        status = operation.status
        start = from_phase or procedure.phase(operation.error.phase).resumed_at or operation.error.phase
        waiting = set(procedure.names[procedure.names.index(start) :])
        operation = self._again(operation, waiting, now)
        fields = {"attempt": operation.attempt, "execution": execution_name(operation)}
        subject = self.resumed(subject, now, **fields, **self._at(start))
        text = f"Resumed at phase {start}."
        return Change(
            subject,
            operation,
            (
                self.transition(before, self.shown_status(subject), "Resumed", text),
                Transition(
                    "Operation", status, "running", "Resumed", f"Attempt {operation.attempt} from phase {start}."
                ),
            ),
            workflow=procedure,
            from_phase=start,
        )

    def start_deletion(
        self,
        subject: S,
        current: tuple[Operation, Procedure] | None,
        operation: Operation,
        procedure: Procedure,
        now: str,
    ) -> Change[S]:
        """A person, or what made the subject, gives it back. What still runs is closed, its workers fenced off."""
        before = self.shown_status(subject)
        closed = self._closed(subject, current, now)
        fields = {**self._fence(subject, operation), **self._at(procedure.names[0])}
        subject = self.leaving(subject, now, remaining=(), **fields)
        subject = self.condition(subject, self.leaving_condition, "False", DELETING, self.leaving_text, now)
        requested = self.transition(before, self.deleting, "DeletionRequested", self.leaving_text)
        transitions = (requested, operation_started(operation))
        return Change(subject, operation, transitions, workflow=procedure, closed=closed)

    def _closed(
        self, subject: S, current: tuple[Operation, Procedure] | None, now: str
    ) -> tuple[Operation, Transition] | None:
        if current is None or current[0].status != "running":
            return None
        operation, procedure = current
        error = OperationError(
            procedure.error,
            self.current_phase(subject, operation),
            f"The {self.noun} was deleted while {procedure.doing}.",
            "Create it again if it is still wanted.",
        )
        over = _changed(operation, now, status="failed", error=error)
        text = f"The {self.noun} is being deleted."
        return over, Transition("Operation", "running", "failed", "Superseded", text)

    def block(
        self, subject: S, operation: Operation, error: OperationError, remaining: tuple[str, ...], now: str
    ) -> Change[S]:
        """A deletion cannot go on for now: say what is left and why. It is tried again."""
        operation = with_phase(operation, error.phase, now, state="failed", ended_at=now, message=error.cause)
        operation = replace(operation, error=error)
        subject = self.touch(subject, now, remaining=remaining)
        text = f"{error.cause} {error.hint}".strip()
        subject = self.condition(subject, self.gone_condition, "False", error.error_type, text, now)
        leftovers = ", ".join(remaining) or "nothing known"
        cause = error.cause if error.cause.endswith((".", "!", "?")) else f"{error.cause}."
        message = f"Phase {error.phase} could not finish: {cause} Left: {leftovers}."
        return Change(subject, operation, (self.transition(self.deleting, self.deleting, "DeletionBlocked", message),))

    def retry(self, subject: S, operation: Operation, procedure: Procedure, now: str) -> Change[S]:
        """A blocked deletion starts over with its next attempt; what is gone already is skipped quickly."""
        if not self.is_leaving(subject):
            raise IllegalTransition(f"The {self.noun} is {self.shown_status(subject)}, not being deleted.")
        operation = self._again(operation, set(procedure.names), now)
        subject = self.touch(subject, now, attempt=operation.attempt, **self._at(procedure.names[0]))
        text = f"Attempt {operation.attempt}."
        transition = self.transition(self.deleting, self.deleting, "DeletionRetried", text)
        return Change(subject, operation, (transition,), workflow=procedure)

    def finish_deletion(self, subject: S, operation: Operation, now: str) -> Change[S]:
        """Nothing is left; the subject's record goes with this change."""
        records = tuple(
            record
            if record.state in OVER
            else replace(record, state="succeeded", started_at=record.started_at or now, ended_at=now, message="")
            for record in operation.phases
        )
        operation = _changed(operation, now, status="succeeded", error=None, phases=records)
        subject = self.condition(self.touch(subject, now), self.gone_condition, "True", "Gone", self.gone_text, now)
        transitions = (self.transition(self.deleting, None, "Deleted", self.gone_text), operation_succeeded(operation))
        return Change(subject, operation, transitions)

    def _at(self, phase: str) -> dict[str, object]:
        return {self.current_field: phase} if self.current_field else {}

    @staticmethod
    def _again(operation: Operation, waiting: set[str], now: str) -> Operation:
        """The operation's next attempt, with these phases to be done again."""
        records = tuple(
            PhaseRecord(record.name, attempt=record.attempt) if record.name in waiting else record
            for record in operation.phases
        )
        again: dict[str, Any] = {
            "status": "running",
            "error": None,
            "attempt": operation.attempt + 1,
            "continuation": 0,
        }
        if (error := operation.error) is not None:
            words = (error.phase, error.error_type, error.cause, error.hint, error.cause_type)
            failure = OperationFailure(operation.attempt, operation.updated_at, *words)
            again["failures"] = (*operation.failures, failure)[-MOST_FAILURES:]
        return _changed(operation, now, phases=records, **again)
