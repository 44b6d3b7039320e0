"""Sums of a large tenant as they are kept: made once from all claims, a part of them in each call, then followed."""

from __future__ import annotations

import json
import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress

from stockyard.domain.cost_records import KeptSums, Usage
from stockyard.domain.month_budgets import BudgetLedger, MonthBudget, month_of
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.values import times
from stockyard.errors import Conflict, StoreUnavailable
from stockyard.operations.costs.budgets import ledger, month_budgets, scope_of_tenant
from stockyard.operations.costs.cluster_sums import ClusterSums, sums_of
from stockyard.operations.costs.tenant_sums import TenantSums, follow
from stockyard.operations.listing import every
from stockyard.operations.node_claims.cluster_claims import all_claims_of
from stockyard.operations.quotas.limits import CLUSTERS, used
from stockyard.operations.quotas.node_claims import used_claims
from stockyard.operations.services import Services
from stockyard.ports import Create, Put, Replace

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
_PAGE = 1000
_WAIT = "The claims of a tenant with so many nodes are being added up for the first time. Ask again in a moment."


def tenant_sums(services: Services) -> TenantSums:
    """Sums of everything of the tenant as it is now. ``StoreUnavailable`` while those of a large one are being made:
    what was read for them is kept, and the next call goes on."""
    if not _is_large(services):
        sums = _empty(services)
        _read_on(services, sums, lambda: False)
        return sums
    head, earlier = _read(services)
    sums = earlier or _empty(services)
    before = sums.at
    if sums.reading is None and follow(services, sums):
        if sums.read >= KEEP_RECORDS or (sums.read and services.seconds_since(before) >= KEEP_SECONDS):
            _keep(services, sums, head)
        return sums
    if sums.reading is None or sums.month != month_of(services.now()):
        sums = _empty(services)
    is_whole = _read_on(services, sums, services.expires_in(READ_SECONDS)) and follow(services, sums)
    _keep(services, sums, head)
    if not is_whole:
        raise StoreUnavailable(_WAIT)
    return sums


def ledger_now(services: Services, budgets: Sequence[MonthBudget]) -> BudgetLedger:
    """The budgets with all that counts for them now; see ``ledger``. A large tenant's own budget goes by its sums."""
    is_whole = any(budget.scope.kind == "tenant" for budget in budgets)
    things = tenant_sums(services).things() if is_whole and _is_large(services) else None
    return ledger(services, budgets, things)


def used_by_tenant(services: Services) -> int:
    """Part of the tenant's budget that is used, in whole USD: what the month will have cost if nothing changes."""
    budgets = month_budgets(services, [scope_of_tenant(services)])
    return sum(math.ceil(budget.forecast) for budget in ledger_now(services, budgets).budgets)


def cluster_sums(services: Services, cluster: Cluster) -> TenantSums:
    """Sums of one cluster as it is now, from its own claims."""
    sums = _empty(services)
    sums.reading = None
    sums.count(all_claims_of(services, cluster.id, consistent=False), services.now())
    sums.describe(services, [(cluster.id, cluster)])
    usages = every(services.store, Usage, f"{sums.month}/", consistent=False)
    sums.spend((usage for usage in usages if usage.cluster_id == cluster.id), services.now())
    return sums


def _is_large(services: Services) -> bool:
    return used_claims(services) + CLUSTER_CLAIMS * used(services.store, f"quota/{CLUSTERS}") >= LARGE


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


def _read(services: Services) -> tuple[KeptSums | None, TenantSums | None]:
    """The first part of what is kept, and the sums; None for what is not there, or not as one write has left it."""
    parts = services.store.list(KeptSums, limit=MOST_PARTS).items
    head = next((part for part in parts if part.id == _part_id(0)), None)
    if head is None:
        return None, None
    own = [part for part in parts[: head.parts] if part.made_at == head.made_at]
    if len(own) < head.parts:
        return head, None
    return head, TenantSums.of_document(json.loads(zlib.decompress(b"".join(part.data for part in own))))


def _keep(services: Services, sums: TenantSums, head: KeptSums | None) -> None:
    """Keep the sums for whoever asks next, unless somebody else has just done so, or they are too long."""
    data = zlib.compress(json.dumps(sums.document(), separators=(",", ":")).encode(), 6)
    pieces = [data[begin : begin + PART_BYTES] for begin in range(0, len(data), PART_BYTES)]
    if len(pieces) > MOST_PARTS:
        return
    version = head.version + 1 if head is not None else 1
    made_at = f"{times.to_text(services.clock.now())}/{version}"
    parts = [KeptSums(_part_id(n), made_at, len(pieces), piece, version=version) for n, piece in enumerate(pieces)]
    first = Create(parts[0]) if head is None else Replace(parts[0])
    with suppress(Conflict):
        services.store.commit(first, *map(Put, parts[1:]))


def _part_id(number: int) -> str:
    return f"{number:02}"
