"""The records of long-running changes."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from stockyard.domain.nodes.records import VersionedRecord
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.states import OperationStatus, PhaseState

MOST_FAILURES = 10
"""Earlier attempts of an operation whose ends are kept."""
MOST_FOLLOWERS = 5
"""Requests by event that may wait for the end of one operation."""


@dataclass(frozen=True, slots=True)
class EventFollower:
    """A request by event that is told how an operation goes and ends."""

    request: str
    """The id of its event."""
    detail_type: str
    correlation_id: str
    account: str
    """The AWS account that has sent it."""


@dataclass(frozen=True, slots=True)
class PhaseRecord:
    """Progress of one phase."""

    name: str
    state: PhaseState = "pending"
    started_at: str | None = None
    ended_at: str | None = None
    attempt: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class OperationError:
    """Reason why an operation failed: the phase, the cause in words, and what a person can do.

    ``cause_type`` is the name of the error that was caught (``VendorQuotaExceeded``), empty when there was none.
    """

    error_type: str
    phase: str
    cause: str
    hint: str
    cause_type: str = ""
    console: str = ""
    """What the console of the machine showed last that did not come up, freed of secrets; empty for nothing."""


@dataclass(frozen=True, slots=True)
class OperationFailure:
    """End of an earlier attempt, which stays readable after a resume. ``attempt`` is the one that failed."""

    attempt: int
    failed_at: str
    phase: str
    error_type: str
    cause: str
    hint: str = ""
    cause_type: str = ""


@dataclass(frozen=True, slots=True)
class OperationRun:
    """A program's work for an operation, whose output is kept as a ``RunLog``: what a machine's console showed, or what
    a provider's own program printed. ``name`` says which, ``attempt`` is the operation's."""

    name: str
    attempt: int
    phase: str
    started_at: str
    ended_at: str | None = None
    error: str | None = None
    """Why it failed, in a sentence; None where it did not, or runs."""


@dataclass(frozen=True, slots=True)
class RunLog(VersionedRecord):
    """Output of a run so far, in parts in the object storage. ``id`` is the operation's, the attempt and the name with
    slashes between them."""

    created_at: str
    parts: tuple[str, ...] = ()
    """Names of the parts, in order."""
    lines: tuple[int, ...] = ()
    """Number of lines up to the end of each part."""
    size: int = 0
    """Bytes of all parts."""
    is_cut: bool = False
    """Whether lines came after the most that are kept."""


@dataclass(frozen=True, slots=True)
class Operation(VersionedRecord):
    """One long-running change of a subject. ``kind`` is one of ``lifecycle.phases``; ``subject`` the record's id.

    ``reverted`` is a change that was not approved, ``cancelled`` one that somebody stopped."""

    kind: str
    subject: str
    status: OperationStatus
    phases: tuple[PhaseRecord, ...]
    created_at: str
    updated_at: str
    actor: str
    subject_name: str = ""
    """What the subject is called, for people: it stays when the subject is gone. Empty where it has no name."""
    error: OperationError | None = None
    attempt: int = 1
    continuation: int = 0
    """How many executions have handed this attempt over to the next one; see ``lifecycle.history``."""
    sequence: int = 0
    parent: str = ""
    """The operation that this one is a part of; empty when it stands by itself."""
    children: tuple[str, ...] = ()
    """The operations that are parts of this one."""
    repave: dict[str, Any] = field(default_factory=dict)
    """Of a change that replaces nodes and waits for approval: ``state``, ``reasons``, and with ``before`` the settings
    and the version that come back where it is not given."""
    request: dict[str, Any] = field(default_factory=dict)
    """Of a queued change: the merge patch of the cluster that it begins with."""
    changes: tuple[dict[str, Any], ...] = ()
    """Of a change: ``pointer``, ``before`` and ``after`` of each field of the subject that it brings about, so that one
    that failed shows what stood before."""
    runs: tuple[OperationRun, ...] = ()
    """Programs that worked for it, in the order in which they began."""
    followers: tuple[EventFollower, ...] = ()
    """Requests by event that are told of it, at most ``MOST_FOLLOWERS``."""
    failures: tuple[OperationFailure, ...] = ()
    """How earlier attempts have ended, the oldest first, at most ``MOST_FAILURES``."""


@dataclass(frozen=True, slots=True)
class SubjectOperation(VersionedRecord):
    """Says that an operation is about a subject, so that those of one subject are listed without reading the tenant.

    ``id`` is ``{subject}/{operation id}``. The sweep writes it, and nothing changes it.
    """

    operation_id: str


def subject_operation(operation: Operation) -> SubjectOperation:
    """The entry of an operation."""
    return SubjectOperation(f"{operation.subject}/{operation.id}", operation.id)
