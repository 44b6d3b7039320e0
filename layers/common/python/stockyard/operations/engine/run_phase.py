"""One phase of a workflow, once: look at the world, do at most one kind of thing, record what was done."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stockyard.domain.records import Operation
from stockyard.errors import Conflict, Fenced, NotYetVisible
from stockyard.lifecycle.change import Change, S
from stockyard.lifecycle.operation import OVER, Moves, phase_of, started_at
from stockyard.lifecycle.procedure import Phase
from stockyard.operations.engine.advance import (
    TRIES,
    WORKFLOW_ACTOR,
    Fence,
    Loaded,
    advance,
    change_writes,
    load,
    measure,
)
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.engine.runner import End, Runner
from stockyard.operations.engine.step import HIDDEN_WAIT, Step
from stockyard.operations.services import Services
from stockyard.ports import Outcome, Replace, Write

SLOWEST = 60
PART = 20


def run_phase(
    runner: Runner[S], services: Services, fence: Fence[S], name: str, loaded: Loaded[S] | None = None
) -> Step:
    """Do the phase. ``done`` when it is finished now or was before; otherwise come again after ``wait`` seconds.
    ``loaded`` are the records as ``load`` has just given them.

    Raises ``Fenced`` when the attempt is over, a retryable ``VendorError`` for the workflow to retry, another error
    for a phase that failed for good. What a cloud only does not show yet is waited for.
    """
    loaded = loaded or load(services, fence)
    phase = runner.procedure(services, loaded[0], loaded[1].kind).phase(name)
    started_subject = advance(
        services, fence, lambda s, o: runner.moves.begin_phase(s, o, phase, services.now()), loaded=loaded
    )
    if started_subject is not loaded[0]:
        loaded = load(services, fence)
    subject, operation = loaded
    if phase_of(operation, name).state in OVER:
        return Step(True, 0)
    if operation.status != "running":
        # An execution that began late: whoever closed the operation has said that nothing comes of it.
        raise Fenced("The operation is over.")
    try:
        outcome = runner.work(services, subject, phase, fence)
    except NotYetVisible as hidden:
        # Every new thing may be hidden for a while: the document's few retries would not last for a whole phase.
        outcome = Outcome(False, _awaited(hidden.detail), wait_seconds=HIDDEN_WAIT)
    if outcome.done:
        end = runner.ends.get(phase.runs)
        if end is not None:
            outcome = end(services, fence, loaded, outcome)
        else:
            _end(runner, services, fence, loaded, phase, outcome)
    if not outcome.done:
        return _not_yet(runner, services, fence, loaded, phase, outcome)
    return Step(True, 0, outcome.message)


_HIDDEN = (" is not shown yet", " exists and", " may have been made and")
"""How details end that say what a cloud hides."""


def _awaited(detail: str) -> str:
    """Words for people about what a phase waits for."""
    thing = detail
    for end in _HIDDEN:
        thing = thing.removesuffix(end)
    return detail if thing == detail else f"Waiting until the cloud shows {thing}, which was just made."


def _end(
    runner: Runner[S], services: Services, fence: Fence[S], loaded: Loaded[S], phase: Phase, outcome: Outcome
) -> None:
    fields, skipped = runner.fields(outcome), outcome.facts.get("skipped") == "true"
    advance(
        services,
        fence,
        lambda s, o: runner.moves.end_phase(s, o, phase, outcome.message, services.now(), fields, skipped=skipped),
        loaded=loaded,
    )


def _not_yet(
    runner: Runner[S], services: Services, fence: Fence[S], loaded: Loaded[S], phase: Phase, outcome: Outcome
) -> Step:
    subject, operation = loaded
    limit = runner.limit(services, subject, phase)
    if services.seconds_since(started_at(operation, phase.name, services.now())) > limit:
        raise runner.timed_out(f"Phase {phase.name} did not finish within {limit} s: {outcome.message}")
    advance(
        services,
        fence,
        lambda s, o: runner.moves.note_phase(s, o, phase.name, outcome.message, services.now()),
        loaded=loaded,
    )
    unchanged = phase_of(operation, phase.name).message == outcome.message
    age = services.seconds_since(operation.updated_at) if unchanged else 0
    return Step(False, pause(outcome.wait_seconds, age), outcome.message)


def pause(seconds: int, unchanged_seconds: float) -> int:
    """The seconds until the next look at what has not changed for so long: a twentieth of that, and at most a minute,
    where the phase asks for less. So what changes late is seen soon enough, and what lasts for hours costs little."""
    return max(seconds, min(SLOWEST, int(unchanged_seconds) // PART))


def end_by(move: Callable[[S, Operation, Outcome, str], Change[S] | None]) -> End[S]:
    """The end of a phase that is this move, by what the phase has reached and the moment."""

    def end(services: Services, fence: Fence[S], loaded: Loaded[S], outcome: Outcome) -> Outcome:
        advance(services, fence, lambda s, o: move(s, o, outcome, services.now()), loaded=loaded)
        return outcome

    return end


def end_deletion(moves: Moves[S], removal: Callable[[Services, S], Sequence[Write]]) -> End[S]:
    """The end of a deletion: the record and all that goes with it in one transaction; operation and events stay."""

    def end(services: Services, fence: Fence[S], _: Loaded[S], outcome: Outcome) -> Outcome:
        for _try in range(TRIES):
            subject, operation = load(services, fence)
            lines = lines_of(services, subject.id)
            if lines:
                raise Conflict(f"{len(lines)} resources are still on the ledger.")
            removals = removal(services, subject)
            change = moves.finish_deletion(subject, operation, services.now())
            _subject, ended_operation, events = change_writes(services, WORKFLOW_ACTOR, change)
            try:
                services.store.commit(*removals, Replace(ended_operation), *events)
            except Conflict:
                continue
            measure(services, operation, ended_operation)
            return outcome
        raise Conflict(f"The {moves.noun} changes too often to be forgotten.")

    return end
