"""Sums of a large tenant as they are kept: made once from all claims, a part of them in each call, then followed."""

from __future__ import annotations

import json
import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress

from stockyard.domain.cost_records import SUMS, SUMS_BEHIND, KeptSums, Usage
from stockyard.domain.month_budgets import BudgetLedger, MonthBudget, month_of
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster, NodeClaim, Outbox
from stockyard.domain.values import ids
from stockyard.errors import Conflict, StoreUnavailable
from stockyard.garbage import without_garbage_collection
from stockyard.operations.costs.budgets import ledger, month_budgets, scope_of_tenant
from stockyard.operations.costs.cluster_sums import ClusterSums, sums_of
from stockyard.operations.costs.following import A_LOOK, Room, follow
from stockyard.operations.costs.tenant_sums import TenantSums
from stockyard.operations.listing import every
from stockyard.operations.node_claims.cluster_claims import all_claims_of
from stockyard.operations.quotas.limits import CLUSTERS, used
from stockyard.operations.quotas.node_claims import used_claims
from stockyard.operations.services import Services
from stockyard.ports import Create, Put, Replace, Write

LARGE = 2000
"""Claims of a tenant whose sums are kept; a cluster counts as ``CLUSTER_CLAIMS``. Those of a smaller one are added up
each time."""
CLUSTER_CLAIMS = 5
PART_BYTES = 300_000
MOST_PARTS = 12
"""A transaction takes 4 MB."""
READ_SECONDS = 12
"""For how long one call reads claims while the sums are being made."""
KEEP_RECORDS = 200
"""Behind so many new events and what was read for them the sums are kept again: who looks next reads only what came
later, and to write them costs about as much."""
KEEP_SECONDS = 600
"""How old kept sums become while anything is new."""
FOLLOW_SECONDS = 43_200
"""Of sums that are older all claims are read instead of the events since: that costs no more."""
DUE_SECONDS = 3600
"""How long nobody needs to look until the sweep brings them up to now."""
ASK_SECONDS = 60
"""Between two events that ask for what is left to be counted."""
STEP_SECONDS = 10
"""How long the background reads before it keeps what it has."""
LEAST_WAIT, CLAIMS_A_SECOND = 2, 1000
"""Seconds that the background takes at least, and how many claims it reads in one."""
_PAGE = 1000
_FORM = "2-"
"""Beginning of the ids of parts in the form of this release. Functions of another release do not see them, while both
run, and when a release is taken back. Parts of the form before have numbers alone."""
_WAIT = "The claims of a tenant with so many nodes are being added up for the first time. Ask again in a moment."


def tenant_sums(services: Services, seconds: float | None = None) -> TenantSums:
    """Sums of everything of the tenant as it is now. ``StoreUnavailable`` when that takes longer than so many seconds,
    ``READ_SECONDS`` by default: what was read for them is kept, and the next call goes on."""
    if not is_large(services):
        return _sums_of_few(services)
    head, sums = _read(services)
    is_late = services.expires_in(READ_SECONDS if seconds is None else seconds)
    began, was_complete = sums.at, head is not None and head.is_complete
    if sums.reading is None or _read_on(services, sums, is_late):
        follow(services, sums, Room(is_late=is_late))
    is_old = sums.read and services.seconds_since(began) >= KEEP_SECONDS
    if sums.read >= KEEP_RECORDS or is_old or not (was_complete and sums.is_complete):
        _keep(services, sums, head)
    if not sums.is_complete:
        raise _being_made(services, sums)
    return sums


@without_garbage_collection()
def recent_sums(services: Services) -> TenantSums:
    """The same for a person who waits: ``as_of`` says how old they are. What is left is counted in the background.
    ``StoreUnavailable`` only where there are none yet, or none that can be followed."""
    if not is_large(services):
        return _sums_of_few(services)
    head, sums = _read(services)
    began, is_late = sums.at, services.expires_in(READ_SECONDS)
    is_made = sums.reading is None
    if is_made:
        follow(services, sums, A_LOOK)
    elif _read_on(services, sums, is_late):
        follow(services, sums, Room(is_late=is_late))
    if sums.is_complete:
        is_old = sums.read and services.seconds_since(began) >= KEEP_SECONDS
        if sums.read >= KEEP_RECORDS or is_old or not is_made:
            _keep(services, sums, head)
    elif not is_made or _may_ask(services, head):
        # Only who asks keeps what is not complete: what works in the background would have to begin again.
        _keep(services, sums, head, asks=_may_ask(services, head))
    if sums.reading is not None:
        raise _being_made(services, sums)
    return sums


def catch_up(services: Services, until: Callable[[], bool]) -> bool:
    """Make the sums of a large tenant, or count what is new, until it is late; whether all is done. Others who keep
    them meanwhile let at most one step be done again.

    ``StoreUnavailable`` where a step has kept nothing: the store is away, or the sums are too long to be kept, and each
    further step would only begin again.
    """
    while is_large(services):
        version = _version(services)
        try:
            tenant_sums(services, STEP_SECONDS)
        except StoreUnavailable:
            if _version(services) == version:
                raise
            if until():
                return False
            continue
        break
    return True


def _version(services: Services) -> int:
    """Version of what is kept; 0 for nothing."""
    head = services.store.get(KeptSums, _part_id(0))
    return head.version if head is not None else 0


def are_due(services: Services) -> bool:
    """Whether sums of a large tenant are missing, or nobody has brought them up to now for an hour."""
    head = services.store.get(KeptSums, _part_id(0))
    if head is not None and head.is_complete and services.seconds_since(_made_at(head)) < DUE_SECONDS:
        return False
    return is_large(services)


def ledger_now(services: Services, budgets: Sequence[MonthBudget]) -> BudgetLedger:
    """The budgets with all that counts for them now; see ``ledger``. A large tenant's own budget goes by its sums."""
    is_whole = any(budget.scope.kind == "tenant" for budget in budgets)
    things = tenant_sums(services).things() if is_whole and is_large(services) else None
    return ledger(services, budgets, things)


def most_of_pools(services: Services) -> dict[str, int] | None:
    """The most pools of a cluster, and the most nodes that a pool asks for, by their quotas; None of a tenant whose
    sums are not kept, or not made yet."""
    if is_large(services):
        with suppress(StoreUnavailable):
            return recent_sums(services).most_of_pools()
    return None


def used_by_tenant(services: Services) -> int:
    """Part of the tenant's budget that is used, in whole USD: what the month will have cost if nothing changes."""
    budgets = month_budgets(services, [scope_of_tenant(services)])
    things = recent_sums(services).things() if budgets and is_large(services) else None
    return sum(math.ceil(budget.forecast) for budget in ledger(services, budgets, things).budgets)


def cluster_sums(services: Services, cluster: Cluster) -> TenantSums:
    """Sums of one cluster as it is now, from its own claims."""
    sums = _empty(services)
    sums.reading = None
    sums.count(all_claims_of(services, cluster.id, consistent=False), services.now())
    sums.describe(services, [(cluster.id, cluster)])
    usages = every(services.store, Usage, f"{sums.month}/", consistent=False)
    sums.spend((usage for usage in usages if usage.cluster_id == cluster.id), services.now())
    return sums


def is_large(services: Services) -> bool:
    """Whether the tenant has so much that its sums are kept."""
    return used_claims(services) + CLUSTER_CLAIMS * used(services.store, f"quota/{CLUSTERS}") >= LARGE


def _sums_of_few(services: Services) -> TenantSums:
    sums = _empty(services)
    _read_on(services, sums, lambda: False)
    return sums


def _empty(services: Services) -> TenantSums:
    now = services.now()
    return TenantSums(now, month_of(now), reading="")


def _read_on(services: Services, sums: TenantSums, is_late: Callable[[], bool]) -> bool:
    """Read what was not read yet, until it is late; whether all of it is there then. All may be a second old: what has
    just been written is followed afterwards, and of a small tenant it is an estimate of hours."""
    usages = f"{sums.month}/"
    while sums.reading is not None:
        if not sums.reading.startswith(usages):
            page = services.store.list(NodeClaim, after=sums.reading or None, limit=_PAGE, consistent=False)
            sums.count(page.items, services.now())
            sums.read += len(page.items)
            sums.reading = page.next_id or usages
        else:
            after = None if sums.reading == usages else sums.reading
            past = services.store.list(Usage, prefix=usages, after=after, limit=_PAGE, consistent=False)
            sums.spend(past.items, services.now())
            sums.read += len(past.items)
            sums.reading = past.next_id
        if sums.reading is not None and is_late():
            return False
    pools = defaultdict(list)
    for pool in every(services.store, Pool, consistent=False):
        pools[pool.cluster_id].append(pool)
    for cluster in every(services.store, Cluster, consistent=False):
        earlier = sums.clusters.get(cluster.id) or ClusterSums(cluster.id, services.now())
        sums.clusters[cluster.id] = sums_of(services, cluster.id, cluster, pools[cluster.id], earlier.groups)
    sums.read += len(sums.clusters)
    return True


def _read(services: Services) -> tuple[KeptSums | None, TenantSums]:
    """The first part of what is kept, and the sums; empty ones where nothing is there that can be followed, as one
    write has left it."""
    head, data = _joined(services.store.list(KeptSums, prefix=_FORM, limit=MOST_PARTS + 1).items)
    if head is None:
        listed = services.store.list(KeptSums, limit=MOST_PARTS + 1).items
        _, data = _joined([part for part in listed if not part.id.startswith(_FORM)])
    if data is None:
        return head, _empty(services)
    sums = TenantSums.of_document(json.loads(zlib.decompress(data)))
    is_over = sums.month != month_of(services.now()) if sums.reading is not None else _is_far_behind(services, sums)
    return head, _empty(services) if is_over else sums


def _joined(parts: Sequence[KeptSums]) -> tuple[KeptSums | None, bytes | None]:
    """The first of the parts of one form, and what all have together; None where they are not of one write."""
    head = parts[0] if parts and int(parts[0].id.removeprefix(_FORM)) == 0 else None
    own = [part for part in parts[: head.parts] if part.made_at == head.made_at] if head is not None else []
    return head, b"".join(part.data for part in own) if head is not None and len(own) == head.parts else None


def _is_far_behind(services: Services, sums: TenantSums) -> bool:
    return services.seconds_since(sums.at) > FOLLOW_SECONDS


def _keep(services: Services, sums: TenantSums, head: KeptSums | None, *, asks: bool = False) -> None:
    """Keep the sums for whoever looks next, unless somebody else has just done so, or they are too long. The first part
    has no data, so that it is read cheaply. ``asks``: what is left is to be counted in the background."""
    data = zlib.compress(json.dumps(sums.document(), separators=(",", ":")).encode(), 6)
    pieces = [b"", *(data[begin : begin + PART_BYTES] for begin in range(0, len(data), PART_BYTES))]
    if len(pieces) > MOST_PARTS + 1:
        return
    version, now = (head.version + 1 if head is not None else 1), services.now()
    asked_at = now if asks else head.asked_at if head is not None else None
    made_at = f"{now}/{version}"
    parts = [
        KeptSums(_part_id(n), made_at, len(pieces), piece, sums.is_complete, asked_at, version=version)
        for n, piece in enumerate(pieces)
    ]
    first = Create(parts[0]) if head is None else Replace(parts[0])
    with suppress(Conflict):
        services.store.commit(first, *map(Put, parts[1:]), *([_request(services, now)] if asks else []))


def _may_ask(services: Services, head: KeptSums | None) -> bool:
    """Whether nobody has asked in the last minute for what is left to be counted."""
    return head is None or head.asked_at is None or services.seconds_since(head.asked_at) >= ASK_SECONDS


def _request(services: Services, now: str) -> Write:
    """The event that lets what is left be counted in the background. People are shown what comes of it."""
    detail = {"id": services.new_id(ids.EVENT), "tenant": services.tenant, "subject": SUMS, "time": now}
    return Create(Outbox(services.new_id(ids.OUTBOX), "event", {"detail_type": SUMS_BEHIND, "detail": detail}, now))


def _being_made(services: Services, sums: TenantSums) -> StoreUnavailable:
    claims = used_claims(services)
    seconds = LEAST_WAIT + max(0, claims - sum(cluster.claims for cluster in sums.clusters.values())) // CLAIMS_A_SECOND
    return StoreUnavailable(_WAIT, retry_after=seconds)


def _made_at(head: KeptSums) -> str:
    return head.made_at.partition("/")[0]


def _part_id(number: int) -> str:
    return f"{_FORM}{number:02}"
