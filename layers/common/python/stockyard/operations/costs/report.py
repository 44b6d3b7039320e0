"""Costs of a tenant: now by the hour, and since the month began. From list prices, so it is no bill."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from stockyard.domain.month_budgets import REACHED, hours_between, hours_left, month_of, month_start
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.values import times
from stockyard.domain.values.prices import HOURS_A_MONTH
from stockyard.operations.costs.budgets import ledger, month_budgets, scope_of_tenant
from stockyard.operations.costs.claim_groups import ClaimGroup, merged
from stockyard.operations.costs.cluster_sums import ClusterSums
from stockyard.operations.costs.kept_sums import cluster_sums, recent_sums
from stockyard.operations.costs.parts import CLUSTER, NODES, PastCost, of_claims, of_clusters
from stockyard.operations.costs.tenant_sums import TenantSums
from stockyard.operations.services import Services

_MILLISECONDS_AN_HOUR = 3_600_000
_key = itemgetter(0)
NOT_INCLUDED = (
    "data through NAT gateways, load balancers and between zones or regions",
    "storage and load balancers that pods ask for",
    "what calls of a cloud's API and requests to its storage cost",
)
"""What is billed and in no price: it goes by use, which nobody knows before."""


@dataclass(slots=True)
class Line:
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
    lines: dict[tuple[str, ...], Line] = field(default_factory=dict)
    """By kind, id of the cluster, pool, type and capacity type, each empty for none."""

    def add_all(self, sums: TenantSums) -> None:
        """Count everything of the tenant, nearly in the order in which lines are told: to sort them takes long else."""
        clusters = [cluster for _, cluster in sorted(sums.clusters.items())]
        for cluster in clusters:
            self.add_items(cluster)
        for cluster in clusters:
            self.add_nodes(cluster.groups)
        self.add_nodes(merged(sums.loose.values()))
        for past in sums.spent.values():
            self.add_past(past)

    def total(self, name: str) -> float:
        """Sum of ``hour`` or ``spent`` of all lines."""
        return float(sum(getattr(line, name) for line in self.lines.values()))

    def add_items(self, cluster: ClusterSums) -> None:
        """Count what stands of a cluster beside its nodes."""
        if not cluster.items:
            return
        hours = hours_between(max(cluster.created_at, self.start), self.now)
        for name, quantity, usd_hour in cluster.items:
            self._add((CLUSTER, cluster.id, "", name, ""), quantity, usd_hour, hours)

    def add_nodes(self, groups: Iterable[ClaimGroup]) -> None:
        """Count the nodes of these claims that stand or are about to. Members of a control plane are items of their
        cluster."""
        start, now = (times.from_text(text).timestamp() * 1000 for text in (self.start, self.now))
        for cluster_id, kind, number, since in groups:
            if kind.type is None or kind.member:
                continue
            usd_hour = None if kind.usd_hour is None else kind.usd_hour * number
            hours = max(0.0, now - max(round(since), start)) / _MILLISECONDS_AN_HOUR
            self._add((NODES, cluster_id, kind.pool, kind.type, kind.capacity_type), number, usd_hour, hours)

    def add_past(self, past: PastCost) -> None:
        """Count what is past."""
        line = self.lines.setdefault(past.line, Line())
        line.complete = line.complete and past.complete
        line.spent += past.spent

    def _add(self, key: tuple[str, ...], quantity: int, usd_hour: float | None, hours: float) -> None:
        line = self.lines.get(key)
        if line is None:
            line = self.lines[key] = Line()
        line.quantity += quantity
        if usd_hour is None:
            line.rate_known = line.complete = False
        else:
            line.hour += usd_hour
            line.spent += usd_hour * hours


@dataclass(frozen=True, slots=True)
class CostReport:
    """Costs as of a moment, whose ``lines`` are summed up: of the whole tenant, or of one cluster and no more."""

    services: Services
    sums: TenantSums
    lines: Lines
    is_whole: bool

    def names(self) -> dict[str, str]:
        """Names of clusters by their ids."""
        return self.sums.cluster_names() | self.sums.names

    def totals(self) -> dict[str, Any]:
        """The body of the answer, less the lines."""
        lines, now = self.lines.lines.values(), self.lines.now
        hour, spent = self.lines.total("hour"), self.lines.total("spent")
        complete = all(line.complete for line in lines)
        rates = {"hour": round(hour, 6), "month_rate": round(hour * HOURS_A_MONTH, 2)}
        sums_of_month = {"spent": round(spent, 4), "forecast": round(spent + hour * hours_left(now), 2)}
        completeness = dict.fromkeys(rates, all(line.rate_known for line in lines))
        completeness |= dict.fromkeys(sums_of_month, complete)
        amounts = {**rates, **sums_of_month}
        return {
            "month": month_of(now),
            "since": self.lines.start,
            "until": now,
            "as_of": self.sums.as_of,
            "currency": "USD",
            **{name: amount if completeness[name] else None for name, amount in amounts.items()},
            **{f"known_{name}": amount for name, amount in amounts.items()},
            "complete": complete,
            "budgets": _budgets(self.services, self.sums, self.names(), whole=self.is_whole),
            "not_included": list(NOT_INCLUDED),
        }

    def document(self) -> dict[str, Any]:
        """The body of the answer."""
        names = self.names()
        return {**self.totals(), "lines": [line_view(key, line, names) for key, line in self.sorted_lines()]}

    def sorted_lines(self) -> list[tuple[tuple[str, ...], Line]]:
        """The lines in the order in which they are told."""
        return sorted(self.lines.lines.items(), key=_key)


def make_report(services: Services, cluster: Cluster | None = None, all_sums: TenantSums | None = None) -> CostReport:
    """Sum up the lines of everything of the tenant, or of one cluster. ``all_sums`` are the sums of the tenant, where
    they have just been read."""
    now = services.now()
    all_sums = all_sums or (cluster_sums(services, cluster) if cluster else recent_sums(services))
    lines = Lines(month_start(now), now)
    lines.add_all(all_sums)
    return CostReport(services, all_sums, lines, cluster is None)


def report(services: Services, cluster: Cluster | None = None, all_sums: TenantSums | None = None) -> dict[str, Any]:
    """The body of the answer of ``make_report``."""
    return make_report(services, cluster, all_sums).document()


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


def line_view(key: tuple[str, ...], line: Line, names: Mapping[str, str]) -> dict[str, Any]:
    """The line as it is told."""
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
