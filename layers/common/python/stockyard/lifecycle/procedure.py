"""Definition of a phase, and of a kind of operation: a row of phases that a state machine runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ENSURE, REMOVE = "ensure", "remove"
"""Work of the subject's driver. Any other name in ``Phase.runs`` is an action of the operation's package."""

COMPENSATE, FAIL, BLOCK = "compensate", "fail", "block"
"""What follows a phase that failed for good: undo it and say so, only say so, or say so and be tried again later."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase. ``limit_seconds`` is how long it may take from its first start in an attempt before it has failed."""

    name: str
    limit_seconds: int
    runs: str
    """``ENSURE``, ``REMOVE``, or the name of an action."""
    condition: str = ""
    """The condition of the subject that the phase decides."""
    undoes: tuple[str, ...] = ()
    """Phases whose resources are removed when this one fails. What earlier ones made stays for a resume."""
    resumed_at: str = ""
    """The phase from which a resume goes on after this one has failed; this one when empty."""
    token_seconds: int = 0
    """More than 0: the workflow waits that long for a task token to be answered, instead of asking again."""
    before_workflow: bool = False
    """Whether it is over before an execution starts, so that no document has a state for it."""
    machine: bool = False
    """Whether what it undoes is a machine that was to come up: then its console is read, and it may be kept."""
    hears_machine: bool = False
    """Whether a machine tells of itself meanwhile: what it said last is a part of why the phase failed."""
    with_agent: bool = False
    """Whether it installs the agent of a cluster that has no machine of its own."""
    moves_network: bool = False
    """Whether it may change the network of a cluster that has nodes."""
    beyond_lines: bool = False
    """Whether it also removes what the cluster's own nodes made, which no line of the ledger names."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """The phases of a kind of operation, and the state machine that runs them."""

    kind: str
    workflow: str
    """The name of the state machine, without the stage's prefix."""
    subject: str
    """``cluster`` or ``claim``: an execution's input has ``cluster_id`` or ``claim_id``."""
    comment: str
    phases: tuple[Phase, ...]
    on_failure: str
    error: str
    """Type of the error that a failure is written down as."""
    doing: str
    """What was going on when a deletion overtook it, for people."""
    advice: str
    """How it goes on after a failure, for people."""
    ends: tuple[str, str] = ("done", "failed")
    """Names of the last states: after success, and after failure."""
    failure: str = ""
    """The name of the error an execution fails with; ``error`` when empty."""
    timeout_seconds: int = 21_600
    resumable: bool = False
    """Whether an execution may start at a later phase, which its input names."""
    together: bool = False
    """Whether one call goes on with the next phase when one is done, so that a single state of the document stands for
    all phases. Such a procedure has no phase with a token, and begins where its operation says that it is."""

    def phase(self, name: str) -> Phase:
        """The row of a phase. Raises ``KeyError`` for a phase that the procedure does not have."""
        return {phase.name: phase for phase in self.phases}[name]

    @property
    def names(self) -> tuple[str, ...]:
        """The phases' names, in order."""
        return tuple(phase.name for phase in self.phases)

    @property
    def conditions(self) -> Iterator[str]:
        """The conditions that the phases decide, in order."""
        return (phase.condition for phase in self.phases if phase.condition)
