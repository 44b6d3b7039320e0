"""Operations as callers see them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stockyard.domain.models.base import View
from stockyard.domain.models.plan import PlannedChange


class PhaseView(View):
    """Progress of one phase."""

    name: str
    state: Literal["pending", "running", "succeeded", "failed", "skipped"]
    started_at: str | None
    ended_at: str | None
    attempt: int
    message: str


class OperationErrorView(View):
    """Why an operation failed: the phase, the cause, and what a person can do.

    ``cause_type`` names the error behind it, such as VendorQuotaExceeded; empty when there was none.
    ``console`` is what the console of a machine showed last that did not come up.
    """

    error_type: str
    phase: str
    cause: str
    hint: str
    cause_type: str
    console: str


class OperationView(View):
    """One long-running change of ``subject``. ``changes`` are what a change of a ready cluster brings about: a failed
    one shows what stood before. A ``queued`` one begins when those before it have ended; one that is ``reverted`` was
    not approved."""

    id: str
    kind: str
    subject: str
    status: Literal["queued", "running", "succeeded", "failed", "reverted"]
    phases: list[PhaseView]
    changes: list[PlannedChange]
    error: OperationErrorView | None
    progress: Annotated[int, Field(ge=0, le=100)]
    created_at: str
    updated_at: str
    version: int
