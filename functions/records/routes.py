"""What is read: operations, events, audit, quotas, prices, health. And what no other function serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from stockyard import wiring
from stockyard.domain import ids
from stockyard.domain.records import AuditRecord, Event, Operation
from stockyard.domain.views import audit_view, event_view, operation_view
from stockyard.edge.contract import Answer, Request
from stockyard.edge.query import Query
from stockyard.edge.route import Door, Roles
from stockyard.errors import InvalidInput, NotFound, PreconditionFailed
from stockyard.lifecycle.operation import progress
from stockyard.operations import quotas
from stockyard.operations.list_prices import list_prices
from stockyard.ports import Page

door = Door(
    "records",
    audit=lambda caller, record: wiring.audit(caller.tenant, record),
    page_key=wiring.page_key,
)

R = TypeVar("R", Operation, Event, AuditRecord)
SETTLED = timedelta(seconds=5)
"""Ids are made a little before what they name is stored: only then is the order of a list final, so that who follows
it by the last id misses nothing. Longer than the longest write with its repetitions."""
FOLLOW = Query(
    "after",
    "Only what is newer than this id: follow a list without page tokens. What is younger than five seconds is told"
    " by the next call, so that nothing is missed; begin with an id of zeros.",
)
SUBJECT = Query("subject", "Only what is about this resource.")


@door.route(
    "GET",
    "/v1/operations/{id}",
    summary="Get an operation",
    action="GetOperation",
    roles=Roles.READERS,
    platform=True,
    answers={200: "operations:OperationView"},
)
def operation(request: Request) -> Answer:
    """Phases, progress, error."""
    found = wiring.store(request.caller.tenant).get(Operation, request.params["id"])
    if found is None:
        raise NotFound(f"There is no operation {request.params['id']}.")
    return Answer(200, operation_view(found, progress(found)), version=found.version)


@door.route(
    "GET",
    "/v1/operations",
    summary="List operations",
    action="ListOperations",
    roles=Roles.READERS,
    platform=True,
    answers={200: "operations:OperationView"},
    query=(FOLLOW, SUBJECT),
    paged=True,
)
def operations(request: Request) -> Answer:
    """In order of time."""
    store = wiring.store(request.caller.tenant)
    page = store.list(Operation, after=_after(request, ids.OPERATION), limit=request.page.size, where=_where(request))
    found, more = _settled(request, ids.OPERATION, page)
    return Answer.listing([operation_view(o, progress(o)) for o in found], more)


@door.route(
    "GET",
    "/v1/events",
    summary="List events",
    action="ListEvents",
    roles=Roles.READERS,
    platform=True,
    answers={200: "events:EventView"},
    query=(FOLLOW, SUBJECT),
    paged=True,
)
def events(request: Request) -> Answer:
    """What happened, in order of time."""
    tenant = request.caller.tenant
    store = wiring.store(tenant)
    page = store.list(Event, after=_after(request, ids.EVENT), limit=request.page.size, where=_where(request))
    found, more = _settled(request, ids.EVENT, page)
    return Answer.listing([event_view(e, tenant) for e in found], more)


@door.route(
    "GET",
    "/v1/audit",
    summary="List audit records",
    action="ListAudit",
    roles=Roles.ADMIN | Roles.PLATFORM,
    platform=True,
    answers={200: "events:AuditView"},
    query=(FOLLOW, SUBJECT),
    paged=True,
)
def audit(request: Request) -> Answer:
    """Who did what, in order of time."""
    store = wiring.store(request.caller.tenant)
    page = store.list(AuditRecord, after=_after(request, ids.AUDIT), limit=request.page.size, where=_where(request))
    found, more = _settled(request, ids.AUDIT, page)
    return Answer.listing([audit_view(record) for record in found], more)


def _after(request: Request, prefix: str) -> str | None:
    """What the list goes on behind. Nothing is told of a subject before it was made: a busy tenant's older items, of
    which there may be many, need not be looked at."""
    given = request.query.get("after")
    if given is not None and not (ids.is_id(given) and given.startswith(f"{prefix}_")):
        raise InvalidInput(f"after must be the id of an item of this list ({prefix}_...).")
    after = request.page.after or given
    subject = str(request.query.get("subject") or "")
    return max(after or "", ids.moment(prefix, subject)) if ids.is_id(subject) else after


def _settled(request: Request, prefix: str, page: Page[R]) -> tuple[Sequence[R], str | None]:
    """What a page shows, and where the list goes on: for who follows it, nothing that others may still come before."""
    if request.query.get("after") is None:
        return page.items, page.next_id
    end = ids.before(prefix, wiring.clock().now() - SETTLED)
    found = [item for item in page.items if item.id < end]
    return found, page.next_id if len(found) == len(page.items) else None


def _where(request: Request) -> dict[str, str] | None:
    subject = request.query.get("subject")
    return {"subject": subject} if subject else None


def _by_name(request: Request, items: Sequence[Mapping[str, Any]]) -> Answer:
    """The page that is asked for of a list in order of name."""
    after = request.page.after
    rest = [item for item in items if after is None or item["name"] > after]
    shown = rest[: request.page.size]
    return Answer.listing(shown, shown[-1]["name"] if len(rest) > len(shown) else None)


@door.route(
    "GET",
    "/v1/quotas",
    summary="List quotas",
    action="ListQuotas",
    roles=Roles.READERS,
    platform=True,
    answers={200: "quotas:QuotaView"},
    paged=True,
)
def list_quotas(request: Request) -> Answer:
    """Each limit and how much of it is used."""
    return _by_name(request, quotas.views(wiring.store(request.caller.tenant), wiring.rules()))


@door.route(
    "PUT",
    "/v1/quotas/{name}",
    summary="Set a tenant's quota",
    action="SetQuota",
    roles=Roles.PLATFORM,
    platform=True,
    body="quotas:QuotaPut",
    answers={200: "quotas:QuotaView"},
    if_match=True,
    dry_run=True,
    description="If-Match is the version shown in the list, 0 while the default holds. With `dry_run`: a plan.",
)
def set_quota(request: Request) -> Answer:
    """Raise or lower a limit; what is used already stays."""
    services, name, limit = wiring.services(request.caller.tenant), request.params["name"], request.body.limit
    if request.dry_run:
        now = quotas.view(services.store, services.rules, name)
        if now["version"] != request.version:
            raise PreconditionFailed(f"The quota is at version {now['version']}, not {request.version}.")
        change = {"pointer": "/limit", "before": now["limit"], "after": limit}
        return Answer.free_plan(changes=[change] if now["limit"] != limit else [])
    view = quotas.set_quota(services, name, limit, request.version)
    return Answer(200, view, version=int(view["version"]))


@door.route(
    "GET",
    "/v1/prices",
    summary="List prices",
    action="ListPrices",
    roles=Roles.READERS,
    answers={200: "prices:PriceView"},
    query=(Query("region", "An AWS region, us-east-1 by default."),),
    paged=True,
)
def prices(request: Request) -> Answer:
    """The EC2 catalogue of a region, in order of name."""
    return _by_name(request, list_prices(wiring.prices().region(str(request.query.get("region") or "us-east-1"))))


@door.route(
    "GET", "/v1/health", summary="The API answers", action="Health", token=False, answers={200: "machines:HealthView"}
)
def health(_: Request) -> Answer:
    """No token; says nothing else."""
    return Answer(200, {"status": "ok"})
