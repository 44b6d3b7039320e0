"""Requests that come as EventBridge events of source ``stockyard.request``: one event in, one answer out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stockyard.edge import idempotency, problems
from stockyard.edge.contract import model_of
from stockyard.edge.idempotency import IdempotencyLease, Keys, Replay
from stockyard.errors import CallerError, FieldProblem, Forbidden, InvalidInput, StockyardError

ACCEPTED, REFUSED = "RequestAccepted", "RequestRefused"
FIELDS = frozenset({"idempotency_key", "cluster", "body"})


@dataclass(frozen=True, slots=True)
class EventRequest:
    """A checked request. ``cluster`` is an id or a name; ``body`` the validated model, None for a deletion."""

    tenant: str
    actor: str
    cluster: str
    body: Any
    lease: IdempotencyLease
    request_id: str


@dataclass(frozen=True, slots=True)
class EventCommand:
    """Command of a detail type: the model of its body (None: no body), whether it names a cluster, who serves it."""

    body: str | None
    names_cluster: bool
    handler: Callable[[EventRequest], Mapping[str, Any]]


def answer_of(
    event: Mapping[str, Any],
    tenant: str | None,
    commands: Mapping[str, EventCommand],
    keys_of: Callable[[str], Keys],
    now: datetime,
    salt: bytes,
) -> tuple[str, dict[str, Any]]:
    """(detail type, detail) of the answer. ``tenant`` comes from the envelope's account, never from the detail;
    ``salt`` is random, see ``idempotency.begin``.

    Failures that may pass are raised, so that the event is delivered again, also when a delivery of the same request
    is still at work: it may yet be accepted. Every other one is ``RequestRefused``.
    """
    base = {"request": str(event.get("id", "")), "detail_type": str(event.get("detail-type", ""))}
    try:
        outcome = _carry_out(event, tenant, commands, keys_of, now, salt)
    except CallerError as error:
        if error.retryable:
            raise
        problem = problems.document(error, instance="event", request_id=base["request"])
        return REFUSED, {**base, "problem": problem}
    return ACCEPTED, {**base, **outcome}


def _carry_out(
    event: Mapping[str, Any],
    tenant: str | None,
    commands: Mapping[str, EventCommand],
    keys_of: Callable[[str], Keys],
    now: datetime,
    salt: bytes,
) -> Mapping[str, Any]:
    if tenant is None:
        raise Forbidden("The account of this event belongs to no tenant.")
    kind, detail, event_id = str(event.get("detail-type")), event.get("detail"), str(event.get("id", ""))
    if kind not in commands:
        raise InvalidInput(f"There is no request {kind[:64]}.")
    if not isinstance(detail, Mapping):
        raise InvalidInput("The detail must be an object.")
    command = commands[kind]
    cluster, body = _checked(command, detail)
    key = idempotency.checked_key(str(detail.get("idempotency_key") or event_id))
    keys = keys_of(tenant)
    lease = idempotency.begin(keys, f"event {kind}#{key}", idempotency.digest(dict(detail), kind), now, salt)
    if isinstance(lease, Replay):
        return lease.body
    request = EventRequest(tenant, f"event:{event.get('account')}", cluster, body, lease, event_id)
    try:
        answer = dict(command.handler(request))
    except StockyardError:
        idempotency.give_up(keys, lease, now)
        raise
    idempotency.finish(keys, lease, 202, {}, answer)
    return answer


def _checked(command: EventCommand, detail: Mapping[str, Any]) -> tuple[str, Any]:
    unknown = [FieldProblem(f"/{name}", "unknown field") for name in detail if name not in FIELDS]
    if unknown:
        raise InvalidInput("The detail has unknown fields.", errors=unknown)
    body = detail.get("body")
    if isinstance(body, Mapping) and "secret" in body:
        raise InvalidInput.at("/body/secret", "A secret may not travel in an event.")
    cluster = detail.get("cluster")
    if command.names_cluster and not (isinstance(cluster, str) and cluster):
        raise InvalidInput.at("/cluster", "The cluster is missing.")
    if command.body is None:
        return str(cluster or ""), None
    from stockyard.domain.models.base import read  # loads pydantic: only for requests that have a body

    return str(cluster or ""), read(model_of(command.body), body, at=("body",))
