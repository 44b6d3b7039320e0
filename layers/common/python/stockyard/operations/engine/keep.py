"""Machines that did not come up and are kept for a while, because somebody asked for that (``keep_failed``).

Until ``kept_until`` a resume or a deletion ends such a machine; from then on the sweep does, and a resume waits for it.
So nobody who makes another machine ever meets somebody who still removes the one before.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from stockyard.domain.records import Operation
from stockyard.domain.values import times
from stockyard.lifecycle.change import Change, S
from stockyard.lifecycle.procedure import Phase
from stockyard.operations.engine.advance import Fence, advance
from stockyard.operations.engine.runner import Runner
from stockyard.operations.services import Services
from stockyard.ports import Outcome

LOOK_AGAIN = 10
MARGIN = 60
"""Seconds before the end of its time in which nobody else begins with a kept machine."""


def is_kept(subject: S, phase: Phase) -> bool:
    """Whether what the phase has made stays when it has failed."""
    return phase.machine and subject.keep_failed > 0


def moment_of_end(services: Services, subject: S) -> str:
    """Until when a machine is kept that has failed just now."""
    return times.to_text(services.clock.now() + timedelta(minutes=subject.keep_failed))


def is_over(services: Services, subject: S, margin: int = 0) -> bool:
    """Whether the subject has a kept machine whose time is over, or is within ``margin`` seconds: then it is the
    sweep's."""
    return subject.kept_until is not None and services.seconds_since(subject.kept_until) >= -margin


def sweep_kept(runner: Runner[S], services: Services, subject: S) -> str | None:
    """Go on with the removal of a kept machine whose time is over. Says what was done; None for nothing."""
    operation = services.store.get(Operation, subject.operation_id or "")
    if operation is None or operation.status != "failed" or not is_over(services, subject):
        return None
    return "removed" if end_kept(runner, services, Fence.of(subject), subject).done else "being removed"


def end_kept(runner: Runner[S], services: Services, fence: Fence[S], subject: S) -> Outcome:
    """Remove the kept machine, and say so on the subject when it is gone. Run twice, the second run changes nothing."""
    operation = services.store.get(Operation, fence.operation_id)
    if operation is None or subject.kept_until is None:
        return Outcome(True)
    for phase in _undone_by(runner, services, subject, operation):
        outcome = runner.remove(services, subject, fence, phase)
        if not outcome.done:
            return Outcome(False, outcome.message, wait_seconds=LOOK_AGAIN)

    def decide(current: S, operation: Operation) -> Change[S] | None:
        return runner.moves.end_kept(current, operation, services.now()) if current.kept_until is not None else None

    advance(services, fence, decide, lambda current: runner.failure_writes(services, current))
    return Outcome(True, "The kept machine is gone.")


def _undone_by(runner: Runner[S], services: Services, subject: S, operation: Operation) -> Iterable[Phase]:
    procedure = runner.procedure(services, subject, operation.kind)
    names = dict.fromkeys(name for phase in procedure.phases if phase.machine for name in phase.undoes)
    return map(procedure.phase, names)
