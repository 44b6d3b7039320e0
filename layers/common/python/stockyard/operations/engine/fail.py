"""Steps of a workflow when a phase failed for good: undo it, then say so; or say what is left of a deletion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stockyard.domain.records import OperationError
from stockyard.lifecycle.change import Failure, S
from stockyard.lifecycle.hints import hint
from stockyard.lifecycle.operation import phase_of
from stockyard.operations.engine.advance import Fence, advance, load
from stockyard.operations.engine.console import console_of, keep_console
from stockyard.operations.engine.keep import is_kept, moment_of_end
from stockyard.operations.engine.ledger import describe, lines_of
from stockyard.operations.engine.runner import Runner
from stockyard.operations.engine.step import COMPENSATION_SECONDS, NAMED, Step, read_error
from stockyard.operations.services import Services

REMAINING = 50
"""How many things that are left a blocked deletion names."""


def compensate(runner: Runner[S], services: Services, fence: Fence[S], *, give_up: bool = False) -> Step:
    """Remove what the failed phase made. Earlier phases' work stays for a resume; a deletion removes it. Of a machine
    its console is read first, and it stays for a while where that was asked for.

    It ends within ``COMPENSATION_SECONDS`` after the phase's own limit, and where the execution has no room for more
    looks (``give_up``): what cannot be removed by then stays on the
    ledger, so that the reason of the failure is told and a deletion removes the rest.
    """
    subject, operation = load(services, fence)
    procedure, phase = runner.failed_phase(services, subject, operation)
    if phase.machine:
        keep_console(runner, services, subject, fence, phase.name)
    if is_kept(subject, phase):
        return Step(True, 0)
    for name in phase.undoes:
        outcome = runner.remove(services, subject, fence, procedure.phase(name))
        if not outcome.done:
            # A resumed attempt may fail before its phase has begun.
            age = services.seconds_since(phase_of(operation, phase.name).started_at or operation.updated_at)
            given_up = give_up or age > runner.limit(services, subject, phase) + COMPENSATION_SECONDS
            return Step(given_up, 0 if given_up else outcome.wait_seconds, outcome.message)
    return Step(True, 0)


def fail(runner: Runner[S], services: Services, fence: Fence[S], error: Mapping[str, Any]) -> Step:
    """Write the failure on the operation and the subject: phase, cause, hint."""
    name, cause = read_error(error)
    subject, operation = load(services, fence)
    procedure, phase = runner.failed_phase(services, subject, operation)
    leftovers = [describe(line) for part in phase.undoes for line in lines_of(services, subject.id, part)]
    kept_until = moment_of_end(services, subject) if leftovers and is_kept(subject, phase) else None
    advice = " ".join((hint(name, procedure.advice), *_of_leftovers(leftovers, runner.moves.noun, kept_until)))
    last_words = runner.last_words(services, subject) if phase.hears_machine else None
    cause = "\n".join(filter(None, (cause, last_words)))
    written = OperationError(procedure.error, phase.name, cause, advice, name, console_of(services, subject))
    failure = Failure(procedure, written, undone=not leftovers, kept_until=kept_until)
    advance(
        services,
        fence,
        lambda s, o: runner.moves.fail(s, o, failure, services.now()),
        lambda s: () if leftovers or not phase.undoes else runner.failure_writes(services, s),
    )
    return Step(True, 0)


def _of_leftovers(leftovers: Sequence[str], noun: str, kept_until: str | None) -> Iterator[str]:
    names = ", ".join(leftovers[:NAMED])
    if kept_until is not None:
        yield f"Kept until {kept_until}, and billed meanwhile: {names}. Deleting the {noun} removes it at once."
    elif leftovers:
        yield f"Not undone yet: {names}; deleting the {noun} removes it."


def block(runner: Runner[S], services: Services, fence: Fence[S], error: Mapping[str, Any]) -> Step:
    """A deletion cannot go on for now: write what is left and why. The sweep tries again."""
    name, cause = read_error(error)
    subject, operation = load(services, fence)
    procedure, phase = runner.failed_phase(services, subject, operation)
    remaining = tuple(describe(line) for line in lines_of(services, subject.id))[:REMAINING]
    failure = OperationError(name, phase.name, cause, hint(name, procedure.advice), name)
    advance(services, fence, lambda s, o: runner.moves.block(s, o, failure, remaining, services.now()))
    return Step(True, 0)
