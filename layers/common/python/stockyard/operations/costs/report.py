"""Costs of a tenant: now by the hour, and since the month began. From list prices, so it is no bill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from stockyard.domain.cost_records import Usage
from stockyard.domain.month_budgets import REACHED, hours_between, hours_left, month_of, month_start
from stockyard.domain.records import UNSEEN, Cluster, NodeClaim
from stockyard.domain.values.prices import HOURS_A_MONTH
from stockyard.operations.costs.budgets import all_budgets, budgets_of, ledger
from stockyard.operations.costs.parts import CostPart, of_claims, of_clusters, of_usage
from stockyard.operations.listing import every
from stockyard.operations.node_claims.cluster_claims import all_claims_of
from stockyard.operations.services import Services

NOT_INCLUDED = (
    "data through NAT gateways, load balancers and between zones or regions",
    "storage and load balancers that pods ask for",
    "what calls of a cloud's API and requests to its storage cost",
)
"""What is billed and in no price: it goes by use, which nobody knows before."""


K = TypeVar("K", Cluster, NodeClaim, Usage)


@dataclass(slots=True)
class _Line:
    """The sum of parts: what stands, and what the month has cost so far."""

    quantity: int = 0
    hour: float = 0.0
    spent: float = 0.0
    complete: bool = True


@dataclass(slots=True)
class _Sums:
    """The lines of a report whose month began at ``start``, as of ``now``."""

    start: str
    now: str
    lines: dict[tuple[str, ...], _Line] = field(default_factory=dict)

    def add(self, part: CostPart) -> None:
        """Count one part."""
        line = self.lines.setdefault(part.line, _Line())
        line.complete = line.complete and part.usd_hour is not None
        usd_hour = part.usd_hour or 0.0
        if part.until is None:
            line.quantity += part.quantity
            line.hour += usd_hour
        line.spent += usd_hour * hours_between(max(part.since, self.start), part.until or self.now)


def report(
    services: Services, cluster: Cluster | None = None, claims: Sequence[NodeClaim] | None = None
) -> dict[str, Any]:
    """The body of the answer: totals and lines of everything of the tenant, or of one cluster. ``claims`` are all of
    the tenant's, where they have just been read."""
    now = services.now()
    sums = _Sums(month_start(now), now)
    clusters = [cluster] if cluster else [c for c in _all(services, Cluster) if c.status not in UNSEEN]
    names = {entry.id: entry.name for entry in clusters}
    if claims is None:
        claims = list(all_claims_of(services, cluster.id, consistent=False) if cluster else _all(services, NodeClaim))
    for part in (*of_clusters(services, clusters, claims), *of_claims(claims)):
        sums.add(part)
    for usage in _all(services, Usage, f"{month_of(now)}/"):
        if cluster is None or usage.cluster_id == cluster.id:
            names |= {usage.cluster_id: usage.cluster} if usage.cluster else {}
            sums.add(of_usage(usage))
    lines = [_view(key, line, names) for key, line in sorted(sums.lines.items())]
    hour, spent = (sum(getattr(line, name) for line in sums.lines.values()) for name in ("hour", "spent"))
    complete = all(line.complete for line in sums.lines.values())
    amounts = {
        "hour": round(hour, 6),
        "month_rate": round(hour * HOURS_A_MONTH, 2),
        "spent": round(spent, 4),
        "forecast": round(spent + hour * hours_left(now), 2),
    }
    return {
        "month": month_of(now),
        "since": sums.start,
        "until": now,
        "currency": "USD",
        **{name: amount if complete else None for name, amount in amounts.items()},
        **{f"known_{name}": amount for name, amount in amounts.items()},
        "complete": complete,
        "budgets": _budgets(services, cluster, names),
        "not_included": list(NOT_INCLUDED),
        "lines": lines,
    }


def hourly(services: Services, cluster: Cluster, claims: Sequence[NodeClaim]) -> float | None:
    """Price by the hour of a cluster with these claims, as its report has that; None while a price is not known."""
    parts = (*of_clusters(services, [cluster], claims), *of_claims(claims))
    known_prices = [part.usd_hour for part in parts if part.usd_hour is not None]
    return round(sum(known_prices), 6) if len(known_prices) == len(parts) else None


def _all(services: Services, kind: type[K], prefix: str = "") -> Iterator[K]:
    """Every record, as it was a second ago: a report is an estimate of hours."""
    return every(services.store, kind, prefix, consistent=False)


def _budgets(services: Services, cluster: Cluster | None, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """The budgets of the month with what counts for them: all of the tenant, or those of one cluster and its pools."""
    budgets = all_budgets(services) if cluster is None else budgets_of(services, cluster)
    return [
        {
            "scope": budget.scope.kind,
            "cluster_id": budget.scope.cluster_id or None,
            "cluster": names.get(budget.scope.cluster_id),
            "pool": budget.scope.pool or None,
            "usd_month": round(budget.usd, 2),
            "spent": round(budget.spent, 4),
            "forecast": round(budget.forecast, 2),
            "percent": budget.percent,
            "reached": budget.percent >= REACHED,
            "complete": budget.complete,
        }
        for budget in ledger(services, budgets).budgets
    ]


def _view(key: tuple[str, ...], line: _Line, names: dict[str, str]) -> dict[str, Any]:
    kind, cluster_id, pool, node_type, capacity_type = key
    return {
        "kind": kind,
        "cluster_id": cluster_id or None,
        "cluster": names.get(cluster_id),
        "pool": pool or None,
        "type": node_type,
        "capacity_type": capacity_type or None,
        "quantity": line.quantity,
        "hour": round(line.hour, 6) if line.complete else None,
        "month_rate": round(line.hour * HOURS_A_MONTH, 2) if line.complete else None,
        "spent": round(line.spent, 4) if line.complete else None,
    }
