"""Costs of a tenant: now by the hour, and since the month began. From list prices, so it is no bill."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain.month_budgets import REACHED, hours_between, hours_left, month_of, month_start
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.values.prices import HOURS_A_MONTH
from stockyard.operations.costs.budgets import ledger, month_budgets, scope_of_tenant
from stockyard.operations.costs.kept_sums import cluster_sums, recent_sums
from stockyard.operations.costs.parts import CostPart, PastCost, of_claims, of_clusters
from stockyard.operations.costs.tenant_sums import TenantSums
from stockyard.operations.services import Services

NOT_INCLUDED = (
    "data through NAT gateways, load balancers and between zones or regions",
    "storage and load balancers that pods ask for",
    "what calls of a cloud's API and requests to its storage cost",
)
"""What is billed and in no price: it goes by use, which nobody knows before."""


@dataclass(slots=True)
class _Line:
    """The sum of parts: what stands, and what the month has cost so far."""

    quantity: int = 0
    hour: float = 0.0
    spent: float = 0.0
    rate_known: bool = True
    """Whether the price of all that stands is known."""
    complete: bool = True
    """Whether that of what is gone is known too."""


@dataclass(slots=True)
class Lines:
    """The lines of a report whose month began at ``start``, as of ``now``."""

    start: str
    now: str
    lines: dict[tuple[str, ...], _Line] = field(default_factory=dict)
    hours: dict[str, float] = field(default_factory=dict)
    """Hours of the month until now, by the moment since when."""

    def add_all(self, parts: Iterable[CostPart], pasts: Iterable[PastCost]) -> None:
        """Count what stands and what is past."""
        for part in parts:
            self.add(part)
        for past in pasts:
            self.add_past(past)

    def total(self, name: str) -> float:
        """Sum of ``hour`` or ``spent`` of all lines."""
        return float(sum(getattr(line, name) for line in self.lines.values()))

    def add(self, part: CostPart) -> None:
        """Count one part that stands."""
        line = self.lines.setdefault(part.line, _Line())
        line.rate_known = line.rate_known and part.usd_hour is not None
        line.complete = line.complete and line.rate_known
        usd_hour = part.usd_hour or 0.0
        line.quantity += part.quantity
        line.hour += usd_hour
        if part.since not in self.hours:
            self.hours[part.since] = hours_between(max(part.since, self.start), self.now)
        line.spent += usd_hour * self.hours[part.since]

    def add_past(self, past: PastCost) -> None:
        """Count what is past."""
        line = self.lines.setdefault(past.line, _Line())
        line.complete = line.complete and past.complete
        line.spent += past.spent


def report(services: Services, cluster: Cluster | None = None, all_sums: TenantSums | None = None) -> dict[str, Any]:
    """The body of the answer: totals and lines of everything of the tenant, or of one cluster. ``all_sums`` are the
    sums of the tenant, where they have just been read."""
    now = services.now()
    sums = Lines(month_start(now), now)
    all_sums = all_sums or (cluster_sums(services, cluster) if cluster else recent_sums(services))
    names = all_sums.cluster_names() | all_sums.names
    sums.add_all(all_sums.parts(), all_sums.spent.values())
    lines = [_view(key, line, names) for key, line in sorted(sums.lines.items())]
    hour, spent = sums.total("hour"), sums.total("spent")
    complete = all(line.complete for line in sums.lines.values())
    rates = {"hour": round(hour, 6), "month_rate": round(hour * HOURS_A_MONTH, 2)}
    sums_of_month = {"spent": round(spent, 4), "forecast": round(spent + hour * hours_left(now), 2)}
    completeness = dict.fromkeys(rates, all(line.rate_known for line in sums.lines.values()))
    completeness |= dict.fromkeys(sums_of_month, complete)
    amounts = {**rates, **sums_of_month}
    return {
        "month": month_of(now),
        "since": sums.start,
        "until": now,
        "as_of": all_sums.as_of,
        "currency": "USD",
        **{name: amount if completeness[name] else None for name, amount in amounts.items()},
        **{f"known_{name}": amount for name, amount in amounts.items()},
        "complete": complete,
        "budgets": _budgets(services, all_sums, names, whole=cluster is None),
        "not_included": list(NOT_INCLUDED),
        "lines": lines,
    }


def hourly(services: Services, cluster: Cluster, claims: Sequence[NodeClaim]) -> float | None:
    """Price by the hour of a cluster with these claims, as its report has that; None while a price is not known."""
    parts = (*of_clusters(services, [cluster], claims), *of_claims(claims))
    known_prices = [part.usd_hour for part in parts if part.usd_hour is not None]
    return round(sum(known_prices), 6) if len(known_prices) == len(parts) else None


def _budgets(
    services: Services, all_sums: TenantSums, names: Mapping[str, str], *, whole: bool
) -> list[dict[str, Any]]:
    """The budgets of the month with what counts for them: all of the tenant, or those of one cluster and its pools."""
    own = [scope_of_tenant(services)] if whole else []
    budgets = month_budgets(services, [*own, *all_sums.scopes()])
    if not budgets:
        return []
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
        for budget in ledger(services, budgets, all_sums.things()).budgets
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
        "hour": round(line.hour, 6) if line.rate_known else None,
        "month_rate": round(line.hour * HOURS_A_MONTH, 2) if line.rate_known else None,
        "spent": round(line.spent, 4) if line.complete else None,
    }
