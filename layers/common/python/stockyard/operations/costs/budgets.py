"""Reads the budgets of a tenant's month, and what counts for them: the sums of the cost report, and what stands until
the month ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from stockyard.domain.cost_records import Usage
from stockyard.domain.month_budgets import (
    USD_MONTH,
    WATCH,
    BudgetLedger,
    BudgetWatch,
    MonthBudget,
    Scope,
    hours_between,
    hours_left,
    month_of,
    month_start,
    usd_month_of,
)
from stockyard.domain.pools.records import CONTROL_PLANE, Pool, pool_id
from stockyard.domain.records import Cluster, NodeClaim, Quota
from stockyard.operations.costs.parts import CostPart, PastCost, of_clusters, of_groups, of_usage
from stockyard.operations.costs.present_prices import PresentPrices
from stockyard.operations.listing import every
from stockyard.operations.node_claims.cluster_claims import all_claims_of
from stockyard.operations.node_providers.catalog import load
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace, Write

NEVER_BILLED = "undoing"
"""The status of a cluster whose acceptance is taken back: nothing was made for it."""
BudgetScope = tuple[Scope, str, float]
"""A budget: its scope, how it is called, and USD."""


def watch_of(services: Services) -> BudgetWatch | None:
    """Notes of the tenant's budgets; None before the first one."""
    return services.store.get(BudgetWatch, WATCH)


def next_watch(services: Services, watch: BudgetWatch | None) -> BudgetWatch:
    """The record after ``watch``, which was read before the sums were; None: there was none."""
    now = services.now()
    if watch is None:
        return BudgetWatch(WATCH, now, due_at=now)
    return replace(watch, updated_at=now, version=watch.version + 1)


def watch_write(record: BudgetWatch) -> Write:
    """Write that goes beside everything that is bought under a budget: it fails when somebody else has bought since the
    record before this one was read."""
    return Create(record) if record.version == 1 else Replace(record)


def budgets_over(services: Services, placements: Iterable[tuple[str, str]]) -> list[MonthBudget]:
    """The budgets that things of these (cluster id, name of the pool) count for, with nothing counted yet."""
    scopes: dict[Scope, MonthBudget] = {}
    for cluster_id, pool_name in sorted(set(placements)):
        cluster, pool = _cluster_and_pool(services, cluster_id, pool_name)
        if cluster is not None:
            _enter(services, scopes, scope_of_cluster(cluster))
        if cluster is not None and pool is not None:
            _enter(services, scopes, scope_of_pool(cluster, pool))
    _enter(services, scopes, scope_of_tenant(services))
    return list(scopes.values())


def _cluster_and_pool(services: Services, cluster_id: str, pool_name: str) -> tuple[Cluster | None, Pool | None]:
    """The named cluster and its named pool; None for what has no name here, or is gone."""
    if not cluster_id:
        return None, None
    if not pool_name:
        return services.store.get(Cluster, cluster_id), None
    return services.store.get_together((Cluster, cluster_id), (Pool, pool_id(cluster_id, pool_name)))


def all_budgets(services: Services) -> list[MonthBudget]:
    """Every budget of the tenant, with nothing counted yet."""
    clusters = {cluster.id: cluster for cluster in every(services.store, Cluster) if cluster.status != NEVER_BILLED}
    pools = [pool for pool in every(services.store, Pool) if pool.cluster_id in clusters]
    of_pools = (scope_of_pool(clusters[pool.cluster_id], pool) for pool in pools)
    return month_budgets(services, [scope_of_tenant(services), *map(scope_of_cluster, clusters.values()), *of_pools])


def month_budgets(services: Services, scopes: Iterable[BudgetScope | None]) -> list[MonthBudget]:
    """The budgets of these scopes, with nothing counted yet; None has none."""
    entered: dict[Scope, MonthBudget] = {}
    for scope in scopes:
        _enter(services, entered, scope)
    return list(entered.values())


class Things(NamedTuple):
    """All that counts for budgets."""

    parts: Iterable[CostPart]
    """Parts of clusters beside their claims; of one that is being made all that it will have."""
    claims: Sequence[tuple[NodeClaim, int]]
    """Claims, each with how many others are as it is, and itself; members of control planes in order of id."""
    members: Mapping[str, int]
    """How many members the control planes of these clusters are to have."""
    past: Iterable[PastCost]


def ledger(services: Services, budgets: Sequence[MonthBudget], things: Things | None = None) -> BudgetLedger:
    """The budgets with all that counts for them now; ``things`` is that, where it has just been read."""
    if not budgets:
        return BudgetLedger()
    now = services.now()
    things = things or _things(services, budgets)
    prices, by_scope = PresentPrices(services, load(services)), {budget.scope: budget for budget in budgets}
    for part in things.parts:
        _count(by_scope, part, part.usd_hour, now)
    placed_members: dict[str, list[NodeClaim]] = {cluster_id: [] for cluster_id in things.members}
    for claim, count in things.claims:
        if claim.placement is None:
            continue
        if not claim.control_plane:
            _count(by_scope, _part(claim), prices.of(claim), now, prices.most(claim), count)
        elif claim.cluster_id in placed_members:
            placed_members[claim.cluster_id].append(claim)
    members = {cluster_id: count - len(placed_members[cluster_id]) for cluster_id, count in things.members.items()}
    for cluster_id, missing in members.items():
        # What replaces another member stands beside it for a while, and is no item of the cluster.
        for claim in placed_members[cluster_id][: max(0, -missing)]:
            _count(by_scope, _part(claim), prices.of(claim), now)
    for past in things.past:
        _, cluster_id, pool, *_ = past.line
        for budget in _counting(by_scope, cluster_id, pool):
            budget.spent += past.spent
            budget.complete = budget.complete and past.complete
    return BudgetLedger(list(budgets), members)


def _enter(services: Services, scopes: dict[Scope, MonthBudget], entry: BudgetScope | None) -> None:
    if entry is not None and entry[0] not in scopes:
        now = services.now()
        scopes[entry[0]] = MonthBudget(*entry, month_of(now), hours_left(now))


def scope_of_tenant(services: Services) -> BudgetScope | None:
    """The budget of the tenant: its scope, how it is called, and USD; None for none."""
    quota = services.store.get(Quota, USD_MONTH)
    limit = quota.limit if quota is not None else services.settings.quotas.get(USD_MONTH)
    return None if limit is None else (Scope(), "the tenant", float(limit))


def scope_of_cluster(cluster: Cluster) -> BudgetScope | None:
    """The budget of a cluster, as that of the tenant."""
    usd = usd_month_of(cluster.limits)
    return None if usd is None else (Scope(cluster.id), f"cluster {cluster.name}", usd)


def scope_of_pool(cluster: Cluster, pool: Pool) -> BudgetScope | None:
    """The budget of a pool of the cluster, as that of the tenant."""
    usd = usd_month_of(pool.limits)
    name = f"pool {pool.name} of cluster {cluster.name}"
    return None if usd is None else (Scope(cluster.id, pool.name), name, usd)


def _things(services: Services, budgets: Sequence[MonthBudget]) -> Things:
    """The clusters and claims that count for any of the budgets; of one with budgets of pools alone no cluster."""
    now, scopes = services.now(), [budget.scope for budget in budgets]
    clusters: list[Cluster]
    if any(scope.kind == "tenant" for scope in scopes):
        clusters = [cluster for cluster in every(services.store, Cluster) if cluster.status != NEVER_BILLED]
        claims = list(every(services.store, NodeClaim))
    else:
        clusters, claims = [], []
        for cluster_id in sorted({scope.cluster_id for scope in scopes}):
            claims += all_claims_of(services, cluster_id)
            cluster = services.store.get(Cluster, cluster_id) if Scope(cluster_id) in scopes else None
            clusters += [cluster] if cluster is not None else []
    usages = every(services.store, Usage, prefix=f"{month_of(now)}/")
    return Things(
        (*of_clusters(services, clusters, claims, ahead=True), *of_groups(services, clusters)),
        [(claim, 1) for claim in claims],
        {cluster.id: wanted_members(cluster) for cluster in clusters},
        (of_usage(usage, month_start(now)) for usage in usages),
    )


def _part(claim: NodeClaim) -> CostPart:
    placed = claim.placement
    since = placed.decided_at if placed is not None else claim.created_at
    pool = CONTROL_PLANE if claim.control_plane else claim.pool
    return CostPart("nodes", claim.cluster_id, pool, "", "", None, since)


def _count(
    budgets: Mapping[Scope, MonthBudget],
    part: CostPart,
    usd_hour: float | None,
    now: str,
    most: float | None = None,
    count: int = 1,
) -> None:
    """Count the costs of so many things until now and until the month ends. ``most`` is what one may come to cost while
    it is being launched."""
    hours = hours_between(max(part.since, month_start(now)), now)
    for budget in _counting(budgets, part.cluster_id, part.pool):
        if usd_hour is None:
            budget.complete = False
            continue
        budget.spent += usd_hour * hours * count
        budget.hour += usd_hour * count
        budget.launching += max(0.0, (most or 0.0) - usd_hour) * count


def _counting(budgets: Mapping[Scope, MonthBudget], cluster_id: str, pool: str) -> Iterator[MonthBudget]:
    """The budgets that something of that cluster and pool, each empty for none, counts for."""
    scopes = {Scope(), Scope(cluster_id), Scope(cluster_id, pool)}
    return (budgets[scope] for scope in scopes if scope in budgets)


def wanted_members(cluster: Cluster) -> int:
    """Number of members that the control plane of the cluster is to have."""
    return int(cluster.settings.get("control_plane_size") or 1)
