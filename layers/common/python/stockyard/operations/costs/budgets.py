"""Reads the budgets of a tenant's month, and what counts for them: the sums of the cost report, and what stands until
the month ends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

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
from stockyard.operations.costs.parts import CostPart, of_clusters, of_groups, of_usage
from stockyard.operations.costs.present_prices import PresentPrices
from stockyard.operations.listing import every
from stockyard.operations.node_claims.cluster_claims import all_claims_of
from stockyard.operations.node_providers.catalog import load
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace, Write

_NEVER_BILLED = "undoing"
"""The status of a cluster whose acceptance is taken back: nothing was made for it."""


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
        cluster = services.store.get(Cluster, cluster_id) if cluster_id else None
        pool = services.store.get(Pool, pool_id(cluster_id, pool_name)) if cluster is not None and pool_name else None
        if cluster is not None:
            _enter(services, scopes, _of_cluster(cluster))
        if cluster is not None and pool is not None:
            _enter(services, scopes, _of_pool(cluster, pool))
    _enter(services, scopes, _of_tenant(services))
    return list(scopes.values())


def budgets_of(services: Services, cluster: Cluster) -> list[MonthBudget]:
    """The budgets of a cluster and of its pools, with nothing counted yet."""
    scopes: dict[Scope, MonthBudget] = {}
    _enter(services, scopes, _of_cluster(cluster))
    for pool in every(services.store, Pool, prefix=f"{cluster.id}/"):
        _enter(services, scopes, _of_pool(cluster, pool))
    return list(scopes.values())


def all_budgets(services: Services) -> list[MonthBudget]:
    """Every budget of the tenant, with nothing counted yet."""
    scopes: dict[Scope, MonthBudget] = {}
    clusters = {cluster.id: cluster for cluster in every(services.store, Cluster) if cluster.status != _NEVER_BILLED}
    _enter(services, scopes, _of_tenant(services))
    for cluster in clusters.values():
        _enter(services, scopes, _of_cluster(cluster))
    for pool in every(services.store, Pool):
        owner = clusters.get(pool.cluster_id)
        if owner is not None:
            _enter(services, scopes, _of_pool(owner, pool))
    return list(scopes.values())


def ledger(services: Services, budgets: Sequence[MonthBudget]) -> BudgetLedger:
    """The budgets with all that counts for them now."""
    if not budgets:
        return BudgetLedger()
    now = services.now()
    clusters, claims = _things(services, budgets)
    prices = PresentPrices(services, load(services))
    placed_claims = [claim for claim in claims if claim.placement is not None and not claim.control_plane]
    for part in (*of_clusters(services, clusters, claims, ahead=True), *of_groups(services, clusters)):
        _count(budgets, part, part.usd_hour, now)
    for claim in placed_claims:
        part = _part(claim)
        _count(budgets, part, prices.of(claim), now, prices.most(claim))
    placed_members: dict[str, list[NodeClaim]] = {cluster.id: [] for cluster in clusters}
    for claim in claims:
        if claim.control_plane and claim.placement and claim.cluster_id in placed_members:
            placed_members[claim.cluster_id].append(claim)
    members: dict[str, int] = {}
    for cluster in clusters:
        placed = placed_members[cluster.id]
        members[cluster.id] = _wanted_members(cluster) - len(placed)
        # What replaces another member stands beside it for a while, and is no item of the cluster.
        for claim in placed[: max(0, -members[cluster.id])]:
            _count(budgets, _part(claim), prices.of(claim), now)
    for usage in every(services.store, Usage, prefix=f"{month_of(now)}/"):
        part = of_usage(usage)
        _count(budgets, part, part.usd_hour, now)
    return BudgetLedger(list(budgets), members)


def used_by_tenant(services: Services) -> int:
    """Part of the tenant's budget that is used, in whole USD: what the month will have cost if nothing changes."""
    entry = _of_tenant(services)
    scopes: dict[Scope, MonthBudget] = {}
    _enter(services, scopes, entry)
    return sum(math.ceil(budget.forecast) for budget in ledger(services, list(scopes.values())).budgets)


def _enter(services: Services, scopes: dict[Scope, MonthBudget], entry: tuple[Scope, str, float] | None) -> None:
    if entry is not None and entry[0] not in scopes:
        now = services.now()
        scopes[entry[0]] = MonthBudget(*entry, month_of(now), hours_left(now))


def _of_tenant(services: Services) -> tuple[Scope, str, float] | None:
    quota = services.store.get(Quota, USD_MONTH)
    limit = quota.limit if quota is not None else services.settings.quotas.get(USD_MONTH)
    return None if limit is None else (Scope(), "the tenant", float(limit))


def _of_cluster(cluster: Cluster) -> tuple[Scope, str, float] | None:
    usd = usd_month_of(cluster.limits)
    return None if usd is None else (Scope(cluster.id), f"cluster {cluster.name}", usd)


def _of_pool(cluster: Cluster, pool: Pool) -> tuple[Scope, str, float] | None:
    usd = usd_month_of(pool.limits)
    name = f"pool {pool.name} of cluster {cluster.name}"
    return None if usd is None else (Scope(cluster.id, pool.name), name, usd)


def _things(services: Services, budgets: Sequence[MonthBudget]) -> tuple[list[Cluster], list[NodeClaim]]:
    """The clusters and claims that count for any of the budgets; of one with budgets of pools alone no cluster."""
    scopes = [budget.scope for budget in budgets]
    if any(scope.kind == "tenant" for scope in scopes):
        clusters = [cluster for cluster in every(services.store, Cluster) if cluster.status != _NEVER_BILLED]
        return clusters, list(every(services.store, NodeClaim))
    clusters, claims = [], []
    for cluster_id in sorted({scope.cluster_id for scope in scopes}):
        claims += all_claims_of(services, cluster_id)
        cluster = services.store.get(Cluster, cluster_id) if Scope(cluster_id) in scopes else None
        clusters += [cluster] if cluster is not None else []
    return clusters, claims


def _part(claim: NodeClaim) -> CostPart:
    placed = claim.placement
    since = placed.decided_at if placed is not None else claim.created_at
    pool = CONTROL_PLANE if claim.control_plane else claim.pool
    return CostPart("nodes", claim.cluster_id, pool, "", "", None, since)


def _count(
    budgets: Iterable[MonthBudget], part: CostPart, usd_hour: float | None, now: str, most: float | None = None
) -> None:
    """Count the costs of one thing until now and until the month ends. ``most`` is what it may come to cost while it is
    being launched."""
    since = max(part.since, month_start(now))
    hours = hours_between(since, part.until or now)
    for budget in _counting(budgets, part):
        if usd_hour is None:
            budget.complete = False
            continue
        budget.spent += usd_hour * hours
        if part.until is None:
            budget.hour += usd_hour
            budget.launching += max(0.0, (most or 0.0) - usd_hour)


def _counting(budgets: Iterable[MonthBudget], part: CostPart) -> Iterator[MonthBudget]:
    return (budget for budget in budgets if budget.scope.holds(part.cluster_id, part.pool))


def _wanted_members(cluster: Cluster) -> int:
    return int(cluster.settings.get("control_plane_size") or 1)
