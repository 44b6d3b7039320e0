"""Routes that read: operations, events, audit, quotas, prices, health. And what no other function serves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from stockyard import wiring
from stockyard.domain.month_budgets import USD_MONTH
from stockyard.domain.records import AuditRecord, Event, Operation
from stockyard.domain.values import ids
from stockyard.domain.views import attributes, audit_view, event_view, operation_view
from stockyard.edge.contract import Answer, Request
from stockyard.edge.following import cursor_after, first_of, news, read_cursor, settled_bound
from stockyard.edge.http.etag import digest_of
from stockyard.edge.http.paging import MOST_OF_HISTORY, counted
from stockyard.edge.http.query import ORDER, SINCE, Query, moment_of
from stockyard.edge.identity import Roles
from stockyard.errors import InvalidInput, NotFound
from stockyard.garbage import without_garbage_collection
from stockyard.lifecycle.operation import progress
from stockyard.operations import pricing
from stockyard.operations.engine.find import children_of, find_cluster
from stockyard.operations.services import Services
from stockyard.ports import Page

http = wiring.http("records")
lambda_handler = http.lambda_handler

R = TypeVar("R", Operation, Event, AuditRecord)
PRICE_KINDS = (pricing.INSTANCE, pricing.RATE)
FOLLOW = Query(
    "after",
    "Only what is new since the answer that gave this `cursor`: each item is told once, as soon as it is there. An id"
    " of an item is taken too; what is younger than five seconds is then told by a later call, so that the last id"
    " passes nothing that is just being stored. An id of zeros begins with the first item.",
)
SUBJECT = Query("subject", "Only what is about this resource, by its id.")
LIST = (FOLLOW, SINCE, ORDER, SUBJECT)
"""What every list in order of time takes."""
OPERATION_STATUSES = ("queued", "running", "succeeded", "failed", "cancelled", "reverted")
DETAIL_TYPES = ("Cluster", "Pool", "NodeClaim", "Operation", "CloudAccount")
RUN_NAME = "^[a-z][a-z0-9-]{0,31}$"
LOG_LINE = ("run", "attempt", "number", "time", "text")
WORD = "^[A-Za-z][A-Za-z0-9_]*$"


@http.route(
    "GET /v1/operations/{id}",
    roles=Roles.READERS,
    platform=True,
    answers={200: "operations:OperationView"},
    waits=True,
)
def get_operation(request: Request) -> Answer:
    """Get an operation. Phases, progress, error."""
    store = wiring.store(request.caller.tenant)
    operation = store.get(Operation, request.params["id"])
    if operation is None:
        raise NotFound(f"There is no operation {request.params['id']}.")
    done = progress(operation, children_of(store, operation))
    digest = digest_of(done) if operation.children else ""
    return Answer(200, operation_view(operation, done), version=operation.version, digest=digest)


@http.route(
    "GET /v1/operations",
    roles=Roles.READERS,
    platform=True,
    answers={200: "operations:OperationView"},
    query=(
        *LIST,
        Query("status", "Only operations in this status.", values=OPERATION_STATUSES),
        Query("kind", "Only operations of this kind, such as `create_cluster`.", pattern=WORD),
    ),
    paged=True,
    counted=True,
    waits=True,
)
def list_operations(request: Request) -> Answer:
    """List operations. In order of time."""
    store = wiring.store(request.caller.tenant)
    return _listing(
        request,
        Operation,
        ids.OPERATION,
        lambda o: operation_view(o, progress(o, children_of(store, o))),
        ("subject", "status", "kind"),
    )


@http.route(
    "GET /v1/operations/{id}/log",
    roles=Roles.READERS,
    platform=True,
    answers={200: "operations:LogLineView"},
    query=(
        Query("after", "Only the lines after those of the answer that gave this `cursor`."),
        Query("run", "Only the lines of runs of this name, such as `console`.", pattern=RUN_NAME),
    ),
    paged=True,
    waits=True,
    description="The operation's `runs` say what ran, and whether it still does. Logs are kept for 90 days.",
)
def get_operation_log(request: Request, services: Services) -> Answer:
    """Get an operation's log. The lines that its runs have printed, run by run, also while they still print."""
    from stockyard.edge.log_cursor import read_position, to_cursor
    from stockyard.operations.engine.run_logs import lines_after

    operation = services.store.get(Operation, request.params["id"])
    if operation is None:
        raise NotFound(f"There is no operation {request.params['id']}.")
    name = request.query.get("run")
    start = request.page.after or request.query.get("after")
    position = read_position(str(start)) if start else {}
    lines, position, more = lines_after(services, operation, position, request.page.size, str(name) if name else None)
    cursor = to_cursor(position)
    return Answer.listing([attributes(line, LOG_LINE) for line in lines], cursor if more else None, cursor)


@http.route(
    "GET /v1/events",
    roles=Roles.READERS,
    platform=True,
    answers={200: "events:EventView"},
    query=(
        *LIST,
        Query("reason", "Only events with this reason, such as `DeletionBlocked`.", pattern=WORD),
        Query("detail_type", "Only events of resources of this kind.", values=DETAIL_TYPES),
    ),
    paged=True,
    counted=True,
    waits=True,
)
def list_events(request: Request) -> Answer:
    """List events. What happened, in order of time."""
    filters = ("subject", "reason", "detail_type")
    return _listing(request, Event, ids.EVENT, lambda event: event_view(event, request.caller.tenant), filters)


@http.route(
    "GET /v1/audit",
    roles=Roles.ADMINISTRATORS,
    platform=True,
    answers={200: "events:AuditView"},
    query=(
        *LIST,
        Query("actor", "Only what this actor did, as `user:ann`."),
        Query("action", "Only calls of this operation, by its operationId.", pattern=WORD),
        Query("outcome", "Only calls that ended so: `done`, or the type of an error.", pattern=WORD),
    ),
    paged=True,
    counted=True,
    waits=True,
)
def list_audit(request: Request) -> Answer:
    """List audit records. Who did what, in order of time."""
    return _listing(request, AuditRecord, ids.AUDIT, audit_view, ("subject", "actor", "action", "outcome"))


def _since(request: Request, prefix: str) -> str:
    """Below which ids nothing is looked at: ``since``, and nothing is told of a subject before it was made, so that the
    older items of a busy tenant need not be read."""
    subject, since = str(request.query.get("subject") or ""), request.query.get("since")
    bound = ids.lower_bound(prefix, subject) if ids.is_id(subject) else ""
    return max(bound, ids.before(prefix, moment_of(since))) if since else bound


def _listing(
    request: Request, kind: type[R], prefix: str, view: Callable[[R], dict[str, Any]], filters: tuple[str, ...]
) -> Answer:
    """A page of a list in order of time. Who follows it is shown nothing that others may still come before."""
    query, store = request.query, wiring.store(request.caller.tenant)
    where = {name: query[name] for name in filters if name in query} or None
    newest_first, since = query.get("order") == "desc", _since(request, prefix)

    most = MOST_OF_HISTORY if where else None
    list_page: Callable[..., Page[R]] = partial(store.list, kind)
    if kind is Operation and "subject" in query:
        from stockyard.operations.subject_operations import operations_of

        list_page = cast("Callable[..., Page[R]]", partial(operations_of, store))

    def read(after: str | None, limit: int, *, consistent: bool = True) -> Page[R]:
        return list_page(
            after=after,
            limit=limit,
            newest_first=newest_first,
            since=since,
            where=where,
            most=most,
            consistent=consistent,
        )

    after, continued = query.get("after"), request.page.after
    cursor = read_cursor(after, prefix) if after else None
    if (after and newest_first) or (cursor and continued):
        text = "goes on in order of time, from cursor to cursor: leave order and page_token out."
        raise InvalidInput.of_parameter("after", text)
    settled = settled_bound(prefix, wiring.clock().now())
    if cursor is not None:
        items, cursor = news(read, cursor, settled, request.page.size)
        return Answer.listing([view(item) for item in items], None, str(cursor))
    page = read(continued or after, request.page.size)
    items = [item for item in page.items if item.id < settled] if after else first_of(page.items, settled)
    next_id = page.next_id
    if len(items) < len(page.items):
        next_id = None if after else items[-1].id
    if continued is None:
        cursor = cursor_after(items, None if newest_first else next_id, settled, after or "")
    total = counted(read, lambda _: True) if request.page.counts else None
    return Answer.listing([view(item) for item in items], next_id, str(cursor) if cursor else None, total)


def _by_name(request: Request, items: Sequence[Mapping[str, Any]]) -> Answer:
    """The page that is asked for of a list in order of name."""
    after = request.page.after
    later_items = [item for item in items if after is None or item["name"] > after]
    page = later_items[: request.page.size]
    return Answer.listing(page, page[-1]["name"] if len(later_items) > len(page) else None)


def _with_use(services: Services, view: Mapping[str, Any]) -> Mapping[str, Any]:
    """The quota with what is used of it: of a budget only the costs say that."""
    if view["name"] != USD_MONTH:
        return view
    from stockyard.operations.costs.kept_sums import used_by_tenant

    return {**view, "used": used_by_tenant(services)}


@http.route(
    "GET /v1/quotas",
    roles=Roles.READERS,
    platform=True,
    answers={200: "quotas:QuotaView"},
    paged=True,
)
def list_quotas(request: Request, services: Services) -> Answer:
    """List quotas. Each limit and how much of it is used."""
    from stockyard.operations.costs.kept_sums import most_of_pools
    from stockyard.operations.quotas import limits as quotas

    views = quotas.views(services, most_of_pools(services))
    return _by_name(request, [_with_use(services, view) for view in views])


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
def set_quota(request: Request, services: Services) -> Answer:
    """Set a tenant's quota. Raise or lower a limit, or go back to the default; what is used already stays."""
    from stockyard.operations.quotas import limits as quotas

    name, limit = request.params["name"], request.body.limit
    if request.dry_run:
        current = quotas.view(services, name)
        request.check_version("quota", int(current["version"]))
        planned = quotas.default_of(services, name) if limit is None else limit
        return Answer.change_plan(current, {"limit": planned}, "quota", name)
    view = _with_use(services, quotas.set_quota(services, name, limit, request.version))
    return Answer(200, view, version=int(view["version"]))


@http.route(
    "GET /v1/prices",
    roles=Roles.READERS,
    answers={200: "prices:PriceView"},
    query=(
        Query("region", "An AWS region, us-east-1 by default.", finds=True),
        Query("name", "Only what is called so, as `t3.large` or `nat_gateway`; `*` stands for any text."),
        Query("kind", "Only instance types, or only the rates of everything else.", values=PRICE_KINDS),
    ),
    paged=True,
    description="Prices of a region that nobody has named before are fetched now; while they are, it is a 404 that"
    " says so.",
)
def list_prices(request: Request) -> Answer:
    """List prices. The EC2 catalogue of a region, in order of name."""
    region = str(request.query.get("region") or "us-east-1")
    wiring.price_requests().wait(region)
    offers = wiring.prices().region(region)
    if offers is None:
        raise NotFound(wiring.prices().why_unknown(region))
    name, kind = str(request.query.get("name") or "*"), str(request.query.get("kind") or "")
    return _by_name(request, pricing.list_prices(offers, name, kind))


@http.route(
    "GET /v1/costs",
    roles=Roles.READERS,
    answers={200: "costs:CostsView"},
    query=(
        Query("cluster", "Only what belongs to this cluster, by id or name.", finds=True),
        Query(
            "max_age",
            "How many seconds ago the answer may have been made; 0 by default. Not together with `cluster`.",
            "integer",
            minimum=0,
            maximum=300,
        ),
    ),
    description="From list prices: an estimate, no bill. Who looks again and again names a `max_age`. A tenant with"
    " very many nodes is answered with 503 at first, until its claims are added up.",
)
def get_costs(request: Request, services: Services) -> Answer:
    """Get costs. What stands costs by the hour, and what this month has cost so far, with what is gone."""
    from stockyard.operations.costs.kept_report import recent_report
    from stockyard.operations.costs.kept_sums import is_large
    from stockyard.operations.costs.lines_text import lines_text
    from stockyard.operations.costs.report import make_report

    reference, max_age = request.query.get("cluster"), int(request.query.get("max_age") or 0)
    if max_age and not reference and not is_large(services):
        return Answer(200, recent_report(services, max_age))
    with without_garbage_collection():
        report = make_report(services, find_cluster(services, str(reference)) if reference else None)
        lines = lines_text(report.sorted_lines(), report.names())
        return Answer(200, report.totals(), texts={"lines": lines})


@http.route(
    "GET /v1/metrics",
    roles=Roles.READERS,
    answers={200: None},
    media="text/plain",
    other_media=("application/openmetrics-text",),
    description="OpenMetrics to who prefers it by `Accept`, as Prometheus does, else Prometheus' older text. Numbers"
    " are 50 seconds old at most, of a tenant with very many nodes 15 minutes; one of them says of when they are.",
)
def get_metrics(_: Request, services: Services) -> Answer:
    """Get numbers for Prometheus. Clusters, nodes, claims, costs, savings, budgets and operations of the tenant."""
    from stockyard.edge.http.openmetrics import content, written
    from stockyard.operations.costs.gauges import exposition

    return Answer(200, content=content(exposition(services, written)))


@http.route(
    "GET /v1/health",
    open_because="A probe has no token; the answer says that the API is there and nothing else",
    answers={200: "clusters.machines:HealthView"},
)
def health(_: Request) -> Answer:
    """The API answers. No token; says nothing else."""
    return Answer(200, {"status": "ok"})


_OPEN = "A reader of the contract needs no token yet; it says nothing of any tenant"


@http.route("GET /v1/openapi.json", open_because=_OPEN, answers={200: None}, media="application/json")
def get_contract(_: Request) -> Answer:
    """Get this document. Compressed to who takes gzip, and only when it has changed to who names its ETag."""
    from functions.records.contract import document

    return Answer(200, content=document())


@http.route("GET /v1/docs", open_because=_OPEN, answers={200: None}, media="text/html")
def get_reference(_: Request) -> Answer:
    """Get a page that shows this document. It loads nothing from elsewhere."""
    from functions.records.contract import page

    return Answer(200, content=page())
