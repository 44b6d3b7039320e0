"""Events and audit records as callers see them."""

from __future__ import annotations

from stockyard.domain.models.base import View


class PhaseChange(View):
    """The phase a subject left and the one it entered; null where there is none."""

    before: str | None
    after: str | None


class EventView(View):
    """What happened to ``subject``; ``sequence`` rises per subject. An event of a pool's node names the cluster, the
    pool and, once it is known, the zone."""

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
    cluster_id: str | None
    pool: str | None
    zone: str | None


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
