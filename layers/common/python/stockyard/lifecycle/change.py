"""A decision about a subject and its operation, as values: what to write and what to tell."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from stockyard.domain.records import Cluster, NodeClaim, Operation, OperationError
from stockyard.domain.values.frozen import dataclass
from stockyard.lifecycle.procedure import Phase, Procedure

Subject = Cluster | NodeClaim
"""What long operations are about: each record belongs to one attempt of one operation at a time (its fence)."""
S = TypeVar("S", bound=Subject)


@dataclass(frozen=True, slots=True)
class Transition:
    """Something to tell. ``about`` is the class name of the subject's record or ``Operation``; it becomes an event and
    an EventBridge message."""

    about: str
    before: str | None
    after: str | None
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Change(Generic[S]):
    """The new records (versions already raised) and what happened."""

    subject: S
    operation: Operation
    transitions: tuple[Transition, ...] = ()
    workflow: Procedure | None = None
    """The procedure whose state machine is to start, if any."""
    from_phase: str = ""
    """The phase at which it starts; empty for the first."""
    closed: tuple[Operation, Transition] | None = None
    """Another operation that this change ends, and what is told of it (a creation overtaken by a deletion)."""


@dataclass(frozen=True, slots=True)
class PhaseEnd:
    """Successful end of a phase."""

    phase: Phase
    message: str
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """Final failure of an operation."""

    procedure: Procedure
    error: OperationError
    undone: bool = True
    """Whether nothing is left of what the failed phase made."""
    kept_until: str | None = None
    """Until when the machine is kept that did not come up; None when none is."""
    ends: Literal["failed", "cancelled"] = "failed"
    """What becomes of the operation: a person who stops it makes it no failure."""

    @property
    def message(self) -> str:
        """Message that tells of the failure."""
        return self.error.cause if self.cancelled else f"Phase {self.error.phase} failed: {self.error.cause}"

    @property
    def cancelled(self) -> bool:
        """Whether a person has stopped the operation."""
        return self.ends == "cancelled"

    @property
    def reason(self) -> str:
        """The reason of conditions and events that tell of it."""
        return self.error.cause_type if self.cancelled else self.error.error_type
