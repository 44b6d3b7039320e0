"""Operations as callers see them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stockyard.domain.models.base import View
from stockyard.domain.models.plan import PlannedChange
from stockyard.domain.models.view_fields import CreatedAt, UpdatedAt, Version
from stockyard.domain.values.states import OperationStatus, PhaseState


class PhaseView(View):
    """Progress of one phase."""

    name: str
    """The name of the phase."""
    state: PhaseState
    """Where the phase is."""
    started_at: str | None
    """When it began; null before."""
    ended_at: str | None
    """When it ended; null before."""
    attempt: int
    """Which try of the operation ran it last."""
    message: str
    """What it waits for, has made, or why it failed."""


class OperationErrorView(View):
    """Reason why an operation failed: the phase, the cause, and what a person can do."""

    error_type: str
    """The type of the error, as in a problem document."""
    phase: str
    """The phase that failed."""
    cause: str
    """Why it failed."""
    hint: str
    """What a person can do; empty for nothing."""
    cause_type: str
    """The name of the error behind it, such as ``VendorQuotaExceeded``; empty when there was none."""
    console: str
    """What the console of a machine showed last that did not come up; empty for nothing."""


class OperationFailureView(View):
    """End of an earlier attempt of an operation, which a resume or a retry has followed."""

    attempt: int
    """Which try it was, from 1."""
    failed_at: str
    """When it ended."""
    phase: str
    """The phase that failed."""
    error_type: str
    """The type of the error, as in a problem document."""
    cause: str
    """Why it failed."""
    hint: str
    """What a person could do; empty for nothing."""
    cause_type: str
    """The name of the error behind it, such as ``VendorQuotaExceeded``; empty when there was none."""


class RunView(View):
    """A program's work for an operation, such as a machine's first boot. ``GET /v1/operations/{id}/log`` has its
    output."""

    name: str
    """What ran: ``console`` is what the console of a machine showed that did not come up."""
    attempt: int
    """Which try of the operation it is of."""
    phase: str
    """The phase that it is of."""
    started_at: str
    """When it began."""
    ended_at: str | None
    """When it ended; null before."""
    error: str | None
    """Why it failed; null where it did not, or runs."""


class LogLineView(View):
    """One line that a run has printed."""

    run: str
    """The name of the run."""
    attempt: int
    """Which try of the operation it is of."""
    number: int
    """The line's number within the run, from 1."""
    time: str
    """When it came to us."""
    text: str
    """The line in printable characters, without what looks like a secret."""


class OperationView(View):
    """One long-running change of a resource."""

    id: str
    """The id of the operation; ids rise with time."""
    kind: str
    """What it does, such as ``create_cluster``."""
    subject: str
    """The id of the resource that it changes."""
    subject_name: str
    """What that resource is called, even when it is gone; empty where it has no name."""
    status: OperationStatus
    """Where it is. A ``queued`` one begins when those before it have ended; a ``reverted`` one was not approved, and
    somebody has stopped a ``cancelled`` one."""
    phases: list[PhaseView]
    """Its phases, in order."""
    runs: list[RunView]
    """The programs that have worked for it, in the order in which they began."""
    changes: list[PlannedChange]
    """What a change of a ready cluster brings about; a failed one shows what stood before."""
    error: OperationErrorView | None
    """Why it failed; null when it did not."""
    failures: list[OperationFailureView]
    """How its earlier attempts ended, the oldest first: they stay when a resume has succeeded. At most ten."""
    progress: Annotated[int, Field(ge=0, le=100)]
    """How far it is, in percent."""
    created_at: CreatedAt
    updated_at: UpdatedAt
    version: Version
