"""What is read: operations, events, audit, quotas, prices, health. And what no other function serves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from stockyard import wiring
from stockyard.domain import ids
from stockyard.domain.records import AuditRecord, Event, Operation
from stockyard.domain.views import audit_view, event_view, operation_view
from stockyard.edge.contract import Answer, Request
from stockyard.edge.identity import Roles
from stockyard.edge.query import Query
from stockyard.errors import InvalidInput, NotFound
from stockyard.lifecycle.operation import progress
from stockyard.operations import pricing
from stockyard.operations.engine.find import children_of, find_cluster
from stockyard.operations.quotas import limits as quotas

http = wiring.http("records")
lambda_handler = http.lambda_handler

R = TypeVar("R", Operation, Event, AuditRecord)
SETTLED = timedelta(seconds=5)
"""An id is made a little before what it names is stored: the order of a list is final only afterwards. Longer than a
write with its repetitions in the way of others; one that the table does not answer may come later (decision 11)."""
PRICE_KINDS = (pricing.INSTANCE, pricing.RATE)
FOLLOW = Query(
    "after",
    "Only what is newer than this id: follow a list without page tokens. What is younger than five seconds is told"
    " by a later call, so that the last id passes nothing that is just being stored; begin with an id of zeros.",
)
SUBJECT = Query("subject", "Only what is about this resource.")


@http.route("GET /v1/operations/{id}", roles=Roles.READERS, platform=True, answers={200: "operations:OperationView"})
def get_operation(request: Request) -> Answer:
    """Get an operation. Phases, progress, error."""
    store = wiring.store(request.caller.tenant)
    operation = store.get(Operation, request.params["id"])
    if operation is None:
        raise NotFound(f"There is no operation {request.params['id']}.")
    done = progress(operation, children_of(store, operation))
    return Answer(200, operation_view(operation, done), version=operation.version)


@http.route(
    "GET /v1/operations",
    roles=Roles.READERS,
    platform=True,
    answers={200: "operations:OperationView"},
    query=(FOLLOW, SUBJECT),
    paged=True,
)
def list_operations(request: Request) -> Answer:
    """List operations. In order of time."""
    store = wiring.store(request.caller.tenant)
    return _listing(request, Operation, ids.OPERATION, lambda o: operation_view(o, progress(o, children_of(store, o))))


@http.route(
    "GET /v1/events",
    roles=Roles.READERS,
    platform=True,
    answers={200: "events:EventView"},
    query=(FOLLOW, SUBJECT),
    paged=True,
)
def list_events(request: Request) -> Answer:
    """List events. What happened, in order of time."""
    return _listing(request, Event, ids.EVENT, lambda event: event_view(event, request.caller.tenant))


@http.route(
    "GET /v1/audit",
    roles=Roles.ADMINISTRATORS,
    platform=True,
    answers={200: "events:AuditView"},
    query=(FOLLOW, SUBJECT),
    paged=True,
)
def list_audit(request: Request) -> Answer:
    """List audit records. Who did what, in order of time."""
    return _listing(request, AuditRecord, ids.AUDIT, audit_view)


def _after(request: Request, prefix: str) -> str | None:
    """What the list goes on behind. Nothing is told of a subject before it was made: a busy tenant's older items, of
    which there may be many, need not be looked at."""
    newer_than = request.query.get("after")
    if newer_than is not None and not (ids.is_id(newer_than) and newer_than.startswith(f"{prefix}_")):
        raise InvalidInput(f"after must be the id of an item of this list ({prefix}_...).")
    after = request.page.after or newer_than
    subject = str(request.query.get("subject") or "")
    return max(after or "", ids.lower_bound(prefix, subject)) if ids.is_id(subject) else after


def _listing(request: Request, kind: type[R], prefix: str, view: Callable[[R], dict[str, Any]]) -> Answer:
    """A page of a list in order of time. Who follows it is shown nothing that others may still come before."""
    subject = request.query.get("subject")
    attributes = {"subject": subject} if subject else None
    store = wiring.store(request.caller.tenant)
    page = store.list(kind, after=_after(request, prefix), limit=request.page.size, where=attributes)
    records, next_id = page.items, page.next_id
    if request.query.get("after") is not None:
        end = ids.before(prefix, wiring.clock().now() - SETTLED)
        records = [item for item in page.items if item.id < end]
        next_id = page.next_id if len(records) == len(page.items) else None
    return Answer.listing([view(record) for record in records], next_id)


def _by_name(request: Request, items: Sequence[Mapping[str, Any]]) -> Answer:
    """The page that is asked for of a list in order of name."""
    after = request.page.after
    later_items = [item for item in items if after is None or item["name"] > after]
    page = later_items[: request.page.size]
    return Answer.listing(page, page[-1]["name"] if len(later_items) > len(page) else None)


@http.route(
    "GET /v1/quotas",
    roles=Roles.READERS,
    platform=True,
    answers={200: "quotas:QuotaView"},
    paged=True,
)
def list_quotas(request: Request) -> Answer:
    """List quotas. Each limit and how much of it is used."""
    return _by_name(request, quotas.views(wiring.services(request.caller.tenant)))


@http.route(
    "PUT /v1/quotas/{name}",
    roles=Roles.PLATFORM,
    platform=True,
    body="quotas:QuotaPut",
    answers={200: "quotas:QuotaView"},
    if_match=True,
    dry_run=True,
    description="If-Match is the version shown in the list, 0 while the default holds. With `dry_run`: a plan.",
)
def set_quota(request: Request) -> Answer:
    """Set a tenant's quota. Raise or lower a limit; what is used already stays."""
    services, name, limit = wiring.services(request.caller.tenant), request.params["name"], request.body.limit
    if request.dry_run:
        current = quotas.view(services, name)
        request.check_version("quota", int(current["version"]))
        return Answer.change_plan(current, {"limit": limit}, "quota", name)
    view = quotas.set_quota(services, name, limit, request.version)
    return Answer(200, view, version=int(view["version"]))


@http.route(
    "GET /v1/prices",
    roles=Roles.READERS,
    answers={200: "prices:PriceView"},
    query=(
        Query("region", "An AWS region, us-east-1 by default."),
        Query("name", "Only what is called so, as `t3.large` or `nat_gateway`; `*` stands for any text."),
        Query("kind", "Only instance types, or only the rates of everything else.", values=PRICE_KINDS),
    ),
    paged=True,
    description="A region whose prices nobody has asked for yet is a 404 that says so.",
)
def list_prices(request: Request) -> Answer:
    """List prices. The EC2 catalogue of a region, in order of name."""
    region = str(request.query.get("region") or "us-east-1")
    offers = wiring.prices().region(region)
    if offers is None:
        raise NotFound(f"Prices of {region} are not known. {_KNOWN_PRICES}")
    name, kind = str(request.query.get("name") or "*"), str(request.query.get("kind") or "")
    return _by_name(request, pricing.list_prices(offers, name, kind))


_KNOWN_PRICES = (
    "Those of us-east-1 are, and within 15 minutes those of every region that an AWS account, a cluster or a node"
    " provider is in."
)


@http.route(
    "GET /v1/costs",
    roles=Roles.READERS,
    answers={200: "costs:CostsView"},
    query=(Query("cluster", "Only what belongs to this cluster, by id or name."),),
    description="From list prices: an estimate, no bill.",
)
def get_costs(request: Request) -> Answer:
    """Get costs. What stands costs by the hour, and what this month has cost so far, with what is gone."""
    from stockyard.operations.clusters.costs import report

    services, reference = wiring.services(request.caller.tenant), request.query.get("cluster")
    return Answer(200, report(services, find_cluster(services, str(reference)) if reference else None))


@http.route(
    "GET /v1/health",
    open_because="A probe has no token; the answer says that the API is there and nothing else",
    answers={200: "machines:HealthView"},
)
def health(_: Request) -> Answer:
    """The API answers. No token; says nothing else."""
    return Answer(200, {"status": "ok"})
