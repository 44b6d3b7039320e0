"""Events and audit records as callers see them."""

from __future__ import annotations

from stockyard.domain.models.base import View


class PhaseChange(View):
    """The phase that a subject left and the one that it entered."""

    before: str | None
    """The phase that was left; null for none."""
    after: str | None
    """The phase that was entered; null for none."""


class EventView(View):
    """Event in the life of a resource."""

    id: str
    """The id of the event; ids rise with time."""
    version: int
    """The version of the subject's record after the event."""
    tenant: str
    """The tenant that the subject belongs to."""
    sequence: int
    """Rises with each event of the subject."""
    time: str
    """When it happened."""
    actor: str
    """Who made it happen: a person, a client or Stockyard itself."""
    subject: str
    """The id of the resource that it happened to."""
    detail_type: str
    """What kind of resource that is."""
    phase: PhaseChange
    """The phases before and after."""
    reason: str
    """A word for programs that says what happened."""
    message: str
    """The same as a sentence for people."""
    name: str | None
    """The name of a node claim or a cluster, of an operation that of its subject, which tells them also when they are
    gone; null for other subjects."""
    cluster_id: str | None
    """The cluster of a node or a pool; null for other subjects."""
    pool: str | None
    """The pool of a node; null for others."""
    zone: str | None
    """The zone of a pool's node, once it is known; else null."""


class AuditView(View):
    """Action of a caller, with its time and how it ended."""

    id: str
    """The id of the record; ids rise with time."""
    time: str
    """When the request came."""
    actor: str
    """Who did it: a person or a client."""
    action: str
    """What was asked for: the ``operationId`` of the route."""
    subject: str
    """The resource that it was about."""
    outcome: str
    """``done``, or the type of the error."""
    request_id: str
    """The id of the request, by which the logs have it."""
    detail: str
    """The fields of the body, without their values."""
