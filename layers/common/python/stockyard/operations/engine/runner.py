"""Facts that the engine has to know of a kind of subject: its moves, its driver's work, and the actions of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Generic

from stockyard.domain.records import Operation
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import StockyardError
from stockyard.lifecycle.change import S
from stockyard.lifecycle.operation import Moves
from stockyard.lifecycle.phases import ANY
from stockyard.lifecycle.procedure import ENSURE, REMOVE, Phase, Procedure
from stockyard.operations.engine.advance import Fence, Loaded
from stockyard.operations.engine.step import Step
from stockyard.operations.services import Services
from stockyard.ports import Outcome, Write

Action = Callable[[Services, S, Fence[S]], Outcome]
"""The work of one phase, once: look at the world and do at most one kind of thing."""
End = Callable[[Services, Fence[S], Loaded[S], Outcome], Outcome]
"""Records the end of a phase whose end is a move of its own. An outcome that is not done: come again."""
Drive = Callable[[Services, S, Fence[S], Phase], Outcome]
"""The driver's work for one phase."""


@dataclass(frozen=True, slots=True)
class Learned(Outcome):
    """An outcome with fields of the subject that the phase has decided."""

    fields: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Runner(Generic[S]):
    """Runner of the operations on one kind of subject. ``actions`` and ``ends`` are by ``Phase.runs``."""

    record: type[S]
    moves: Moves[S]
    remove: Drive[S]
    """Removes what a phase has made: it undoes one that failed, and is the work of ``REMOVE``."""
    actions: Mapping[str, Action[S]]
    ends: Mapping[str, End[S]]
    fact_fields: frozenset[str]
    """Facts of an outcome that are fields of the record."""
    timed_out: type[StockyardError]
    """What is raised for a phase that did not finish within its limit."""
    ensure: Drive[S] | None = None
    driver: Callable[[S], str] = lambda _: ANY
    awaits: Mapping[str, Callable[[Services, Fence[S], str], Step]] = field(default_factory=dict)
    """By phase: keeps the token of a workflow that waits until the phase is over."""
    failure_writes: Callable[[Services, S], Sequence[Write]] = lambda _services, _subject: ()
    """What is written with a failure that left nothing behind."""
    last_words: Callable[[Services, S], str | None] = lambda _services, _subject: None
    """What the subject's machine said last; None for nothing."""
    console: Callable[[Services, S, Fence[S]], str | None] = lambda _services, _subject, _fence: None
    """What the console of the subject's machine shows; None where there is no machine, or none with a console."""
    limit: Callable[[Services, S, Phase], int] = lambda _services, _subject, phase: phase.limit_seconds
    """How many seconds a phase of the subject may take."""

    def procedure(self, services: Services, subject: S, kind: str) -> Procedure:
        """The phases of an operation of this kind on the subject."""
        return services.procedure(kind, self.driver(subject))

    def work(self, services: Services, subject: S, phase: Phase, fence: Fence[S]) -> Outcome:
        """Do the phase once, as its row says."""
        if phase.runs == REMOVE:
            return self.remove(services, subject, fence, phase)
        if phase.runs == ENSURE and self.ensure is not None:
            return self.ensure(services, subject, fence, phase)
        action = self.actions.get(phase.runs)
        return action(services, subject, fence) if action is not None else Outcome(True)

    def fields(self, outcome: Outcome) -> dict[str, object]:
        """Facts that a phase learned, as fields of the record."""
        fields: dict[str, object] = {n: value for n, value in outcome.facts.items() if n in self.fact_fields}
        return {**fields, **outcome.fields} if isinstance(outcome, Learned) else fields

    def failed_phase(self, services: Services, subject: S, operation: Operation) -> tuple[Procedure, Phase]:
        """The procedure of a running operation and the phase it is at."""
        procedure = self.procedure(services, subject, operation.kind)
        return procedure, procedure.phase(self.moves.current_phase(subject, operation))
