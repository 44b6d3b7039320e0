"""Events and audit records as callers see them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from stockyard.domain.models.base import View
from stockyard.domain.records import AuditRecord, Event


class PhaseChange(View):
    """The phase a subject left and the one it entered; null where there is none."""

    before: str | None
    after: str | None


class EventView(View):
    """What happened to ``subject``; ``sequence`` rises per subject."""

    id: str
    version: int
    tenant: str
    sequence: int
    time: str
    actor: str
    subject: str
    detail_type: str
    phase: PhaseChange
    reason: str
    message: str


class AuditView(View):
    """Who did what, when, and how it ended (``done`` or the error's type)."""

    id: str
    time: str
    actor: str
    action: str
    subject: str
    outcome: str
    request_id: str
    detail: str


def event_view(event: Event, tenant: str) -> dict[str, Any]:
    """``event`` as an :class:`EventView` document."""
    document = asdict(event)
    phase = {"before": document.pop("before"), "after": document.pop("after")}
    return {**document, "tenant": tenant, "phase": phase}


def audit_view(record: AuditRecord) -> dict[str, Any]:
    """``record`` as an :class:`AuditView` document."""
    return {name: getattr(record, name) for name in AuditView.model_fields}
