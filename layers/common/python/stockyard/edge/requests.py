"""Requests that come as EventBridge events of source ``stockyard.request``: one event in, its answers out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from stockyard.domain.values import times
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.patterns import pattern
from stockyard.domain.values.rights import OPERATOR
from stockyard.edge import idempotency, problems
from stockyard.edge.contract import model_of
from stockyard.edge.idempotency import IdempotencyLease, Keys, Replay
from stockyard.errors import CallerError, FieldProblem, Forbidden, InvalidInput, StockyardError

ACCEPTED, REFUSED, COMPLETED = "RequestAccepted", "RequestRefused", "RequestCompleted"
CORRELATION_ID = "correlation_id"
OF_EACH = frozenset({"idempotency_key", CORRELATION_ID})
"""Fields that every request may have. A task token of Step Functions fits into a correlation id."""
_CORRELATION = pattern(r"[!-~]{1,2048}")

Message = tuple[str, dict[str, Any]]
"""(detail type, detail)"""


@dataclass(frozen=True, slots=True)
class EventRequest:
    """A checked request. ``names`` are the ids or names that its detail gives, by field; ``body`` is the validated
    model, None for a deletion; ``rights`` are those of the tenant's accounts."""

    tenant: str
    actor: str
    names: Mapping[str, str]
    body: Any
    lease: IdempotencyLease
    request_id: str
    rights: str = OPERATOR

    @property
    def cluster(self) -> str:
        """The id or name of the cluster that the request is about."""
        return self.names["cluster"]

    @property
    def again(self) -> bool:
        """Whether an earlier delivery has begun the work: it may be done, or a part of it."""
        return self.lease.record.version > 1


@dataclass(frozen=True, slots=True)
class EventCommand:
    """Command of a detail type: the model of its body (None: no body), the fields that name what it is about, who
    serves it, and which rights it needs at least. The handler answers ``subject``, ``name``, ``operation_id`` (None:
    the work is done) and ``status``."""

    body: str | None
    names: tuple[str, ...]
    handler: Callable[[EventRequest], Mapping[str, Any]]
    rights: str = OPERATOR

    @property
    def fields(self) -> frozenset[str]:
        """The fields that its detail may have."""
        return OF_EACH | {*self.names, *(("body",) if self.body is not None else ())}


def envelope_of(event: Mapping[str, Any], tenant: str | None) -> dict[str, Any]:
    """Fields that all answers to an event have: which it was, whose, and by which id the caller knows it."""
    request, detail = str(event.get("id", "")), event.get("detail")
    own_id = detail.get(CORRELATION_ID) if isinstance(detail, Mapping) else None
    return {
        "request": request,
        "detail_type": str(event.get("detail-type", "")),
        CORRELATION_ID: own_id if _is_correlation_id(own_id) else request,
        "account": str(event.get("account", "")),
        "tenant": tenant,
    }


def answers_of(
    event: Mapping[str, Any],
    tenant: str | None,
    commands: Mapping[str, EventCommand],
    keys_of: Callable[[str], Keys],
    follow: Callable[[str, str, Mapping[str, Any]], Message | None],
    now: datetime,
    salt: bytes,
    rights: str = OPERATOR,
) -> list[Message]:
    """(detail type, detail) of each answer: ``RequestAccepted``, behind it the end where there is nothing to wait for;
    or ``RequestRefused`` with every fault. ``tenant`` comes from the envelope's account, never from the detail.
    ``follow`` lets the request be told of an operation (tenant, operation, envelope) and gives the end of one that is
    over. ``salt`` is random, see ``idempotency.begin``.

    Failures that may pass are raised, so that the event is delivered again, also when a delivery of the same request
    is still at work: it may yet be accepted.
    """
    envelope = envelope_of(event, tenant)
    try:
        outcome = _carry_out(event, tenant, commands, keys_of, now, salt, rights)
        operation_id = outcome["operation_id"]
        end = follow(str(tenant), operation_id, envelope) if operation_id else _done(envelope, outcome, now)
    except CallerError as error:
        if error.retryable:
            raise
        problem = problems.document(error, instance="event", request_id=envelope["request"])
        return [(REFUSED, {**envelope, "problem": problem})]
    return [(ACCEPTED, {**envelope, **outcome}), *([] if end is None else [end])]


def _done(envelope: Mapping[str, Any], outcome: Mapping[str, Any], now: datetime) -> Message:
    """The end of a request that was done at once."""
    parts = {name: outcome[name] for name in ("operation_id", "subject", "name")}
    return COMPLETED, {**envelope, **parts, "time": times.to_text(now), "status": "succeeded"}


def _carry_out(
    event: Mapping[str, Any],
    tenant: str | None,
    commands: Mapping[str, EventCommand],
    keys_of: Callable[[str], Keys],
    now: datetime,
    salt: bytes,
    rights: str,
) -> Mapping[str, Any]:
    if tenant is None:
        raise Forbidden("The account of this event belongs to no tenant.")
    kind, detail, event_id = str(event.get("detail-type")), event.get("detail"), str(event.get("id", ""))
    if kind not in commands:
        raise InvalidInput(f"There is no request {kind[:64]}.")
    if not isinstance(detail, Mapping):
        raise InvalidInput("The detail must be an object.")
    command = commands[kind]
    if command.rights not in (OPERATOR, rights):
        raise Forbidden(f"{kind} needs the rights of an administrator, which the tenant's accounts do not have.")
    names, body = _checked(command, detail)
    key = idempotency.checked_key(str(detail.get("idempotency_key") or event_id))
    keys = keys_of(tenant)
    # The same request may be sent again by another step, which waits by another id.
    content = {name: value for name, value in detail.items() if name != CORRELATION_ID}
    lease = idempotency.begin(keys, f"event {kind}#{key}", idempotency.digest(content, kind), now, salt)
    if isinstance(lease, Replay):
        return lease.body
    request = EventRequest(tenant, f"event:{event.get('account')}", names, body, lease, event_id, rights)
    try:
        answer = dict(command.handler(request))
    except StockyardError:
        idempotency.give_up(keys, lease, now)
        raise
    idempotency.finish(keys, lease, 202, {}, answer)
    return answer


def _is_correlation_id(value: object) -> bool:
    return isinstance(value, str) and _CORRELATION.fullmatch(value) is not None


def _checked(command: EventCommand, detail: Mapping[str, Any]) -> tuple[Mapping[str, str], Any]:
    """Names in the detail, and its body as the model. ``InvalidInput`` with every fault of both."""
    faults = [FieldProblem(f"/{name}", "unknown field") for name in detail if name not in command.fields]
    body, names = detail.get("body"), {name: detail.get(name) for name in command.names}
    if isinstance(body, Mapping) and "secret" in body:
        # the body's own model takes one, and its faults would not say that
        faults.append(FieldProblem("/body/secret", "A secret may not travel in an event."))
        body = {name: value for name, value in body.items() if name != "secret"}
    for name, value in names.items():
        if not (isinstance(value, str) and value):
            faults.append(FieldProblem(f"/{name}", f"The {name} is missing."))
    if CORRELATION_ID in detail and not _is_correlation_id(detail[CORRELATION_ID]):
        text = "must have 1 to 2,048 printable ASCII characters, without spaces"
        faults.append(FieldProblem(f"/{CORRELATION_ID}", text))
    model: Any = None
    if command.body is not None:
        from stockyard.domain.models.base import read  # loads pydantic: only for requests that have a body

        try:
            model = read(model_of(command.body), body, at=("body",))
        except InvalidInput as error:
            faults += error.errors
    if faults:
        raise InvalidInput.of(faults)
    return {name: str(value) for name, value in names.items()}, model
