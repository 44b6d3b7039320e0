"""What every operation goes through, whatever it is about."""

from __future__ import annotations

from dataclasses import replace

from stockyard.domain.records import Operation, PhaseRecord
from stockyard.lifecycle import phases


def new_operation(id: str, kind: str, subject: str, actor: str, now: str) -> Operation:
    """A running operation with all its phases pending."""
    records = tuple(PhaseRecord(name) for name in phases.PHASES[kind])
    return Operation(id, kind, subject, "running", records, now, now, actor)


def execution_name(operation: Operation) -> str:
    """The name of the execution that carries this attempt: a second start is the same start."""
    return f"{operation.id}-{operation.attempt}"


def with_phase(operation: Operation, name: str, now: str, **fields: object) -> Operation:
    """The operation, a version on, with fields of one phase changed."""

    def changed(record: PhaseRecord) -> PhaseRecord:
        return replace(record, **fields) if record.name == name else record  # type: ignore[arg-type]

    records = tuple(changed(record) for record in operation.phases)
    return replace(operation, phases=records, updated_at=now, version=operation.version + 1)


def phase_of(operation: Operation, name: str) -> PhaseRecord:
    """The record of a phase. Raises ``KeyError`` for a phase that the operation does not have."""
    for record in operation.phases:
        if record.name == name:
            return record
    raise KeyError(name)


def progress(operation: Operation) -> int:
    """How much of an operation is done, 0 to 100, by phases."""
    if operation.status == "succeeded":
        return 100
    done = sum(1 for p in operation.phases if p.state in ("succeeded", "skipped"))
    return 100 * done // len(operation.phases)
