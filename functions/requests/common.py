"""Parts of the answers that request events have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from stockyard import wiring
from stockyard.edge.requests import EventRequest
from stockyard.errors import NotFound, PreconditionFailed
from stockyard.operations.services import Services

T = TypeVar("T")
TRIES = 5
"""How often a change is tried again that somebody else was in the way of."""


def outcome(
    subject: str, name: str | None, status: str, operation_id: str | None = None, cluster: str | None = None
) -> Mapping[str, Any]:
    """Result of a request: the resource ``subject``, and the operation that does the rest; None: none.
    ``cluster`` is the id of the one that it is, or belongs to."""
    belongs = {} if cluster is None else {"cluster": cluster}
    return {"subject": subject, "name": name, "operation_id": operation_id, "status": status, **belongs}


def audit(services: Services, request: EventRequest, action: str, subject: str) -> None:
    """Write down who did what, of use cases that do not."""
    wiring.audit(request.tenant, services.audit_record(request.actor, action, subject, request.request_id))


def until_changed(change: Callable[[], T]) -> T:
    """Result of a change that is tried again when somebody else has written first. An event names no version: what it
    asks for holds for the resource as it is by then."""
    for remaining in range(TRIES, -1, -1):
        try:
            return change()
        except PreconditionFailed:
            if not remaining:
                raise
    raise AssertionError


def deletion(request: EventRequest, delete: Callable[[], Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """The answer to a deletion. What an earlier delivery of the event has removed is gone, and not missing."""
    try:
        return delete()
    except NotFound:
        if not request.again:
            raise
        return outcome(name, None, "deleted")
