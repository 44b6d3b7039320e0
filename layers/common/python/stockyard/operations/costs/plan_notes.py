"""Warnings of plans that a change would pass a budget, with figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from stockyard.domain.month_budgets import (
    BUDGET_REACHED,
    MonthBudget,
    Scope,
    hours_left,
    month_of,
    passing_text,
    usd_month_of,
)
from stockyard.domain.records import Cluster
from stockyard.domain.values.prices import PriceItem
from stockyard.errors import BudgetReached
from stockyard.operations.costs.budgets import budgets_over, next_watch, watch_of, watch_write
from stockyard.operations.costs.kept_sums import ledger_now
from stockyard.operations.services import Services
from stockyard.ports import Write

_NONE: Mapping[Scope, float | None] = MappingProxyType({})


def known_hour(items: Sequence[PriceItem]) -> float:
    """The known part of the price of these items, in USD an hour."""
    return sum(item.hour for item in items if item.hour is not None)


def passed_budgets(
    services: Services, cluster_id: str, pool: str, more: float, amounts: Mapping[Scope, float | None] = _NONE
) -> list[MonthBudget]:
    """The budgets that have no room for ``more`` USD an hour of that cluster and pool, the narrowest first. ``amounts``
    are budgets as they are to be; None for none."""
    budgets = [budget for budget in budgets_over(services, [(cluster_id, pool)]) if budget.scope not in amounts]
    now = services.now()
    for scope, usd in amounts.items():
        if usd is not None:
            budgets.append(MonthBudget(scope, _name(services, scope), usd, month_of(now), hours_left(now)))
    return [budget for budget in ledger_now(services, budgets).over(cluster_id, pool) if budget.is_reached_for(more)]


def budget_warnings(
    services: Services, cluster_id: str, pool: str, more: float, amounts: Mapping[Scope, float | None] = _NONE
) -> list[dict[str, Any]]:
    """Warnings of a plan that buys ``more`` USD an hour, or that sets the budgets in ``amounts``; nothing where all
    of it has room. Whatever costs nothing more passes no budget."""
    if more <= 0 and not amounts:
        return []
    passed = passed_budgets(services, cluster_id, pool, max(0.0, more), amounts)
    relevant = [budget for budget in passed if more > 0 or budget.scope in amounts]
    waits = f" What has no room waits with the reason {BUDGET_REACHED}." if more > 0 else ""
    return [{"pointer": "", "detail": f"{passing_text(budget, max(0.0, more))}{waits}"} for budget in relevant]


def check_budgets(services: Services, cluster: Cluster, items: Sequence[PriceItem]) -> list[Write]:
    """``BudgetReached`` where a new cluster costs more than the budgets over it have room for; else what is written
    beside its acceptance, so that nobody else has bought under them meanwhile."""
    watch = watch_of(services)
    own = {Scope(cluster.id): usd_month_of(cluster.limits)}
    more = known_hour(items)
    passed = passed_budgets(services, cluster.id, "", more, own)
    if passed:
        raise BudgetReached(passing_text(passed[0], more))
    budgets = [*budgets_over(services, [("", "")]), *(usd for usd in own.values() if usd is not None)]
    return [watch_write(next_watch(services, watch))] if budgets else []


def _name(services: Services, scope: Scope) -> str:
    if not scope.cluster_id:
        return "the tenant"
    cluster = services.store.get(Cluster, scope.cluster_id)
    name = f"cluster {cluster.name}" if cluster is not None else "the cluster"
    return f"pool {scope.pool} of {name}" if scope.pool else name
