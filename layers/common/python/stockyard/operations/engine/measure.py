"""What a change of an operation is worth measuring: phases that ended, and failures."""

from __future__ import annotations

from stockyard.domain import times
from stockyard.domain.records import Operation
from stockyard.metrics import OPERATIONS_FAILED, PHASE_SECONDS
from stockyard.operations.services import Services


def measure(services: Services, before: Operation, after: Operation) -> None:
    """Measure what has become of an operation by a change that was written."""

    def keys(phase: str) -> dict[str, str]:
        return {"tenant": services.tenant, "operation_id": after.id, "operation_kind": after.kind, "phase": phase}

    for old, new in zip(before.phases, after.phases, strict=True):
        if new.state == "succeeded" != old.state and new.started_at and new.ended_at:
            seconds = (times.from_text(new.ended_at) - times.from_text(new.started_at)).total_seconds()
            services.telemetry.measure("phase ended", PHASE_SECONDS, seconds, attempt=after.attempt, **keys(new.name))
    error = after.error
    if error is not None and error != before.error:
        services.telemetry.measure(
            "operation failed", OPERATIONS_FAILED, 1, attempt=after.attempt, error=error.cause_type, **keys(error.phase)
        )
