"""Costs now, and in this month."""

from __future__ import annotations

from stockyard_client.base_models import Model
from stockyard_client.resources.base import Collection, parsed, path

CLUSTER, NODES = "cluster", "nodes"
"""Kinds of lines: what of a cluster is no node, and nodes."""


class CostLine(Model):
    """An item of a cluster, or the nodes of one pool, type and capacity type. ``hour`` and ``month_rate`` (of 730
    hours) are USD for all that stand now, ``spent`` is what the month has cost so far; None: a price is not known."""

    kind: str
    cluster_id: str | None = None
    cluster: str | None = None
    pool: str | None = None
    type: str = ""
    capacity_type: str | None = None
    quantity: int = 0
    hour: float | None = None
    month_rate: float | None = None
    spent: float | None = None


class Budget(Model):
    """Budget of a month, and what counts for it in USD: ``spent`` so far, ``forecast`` by the end of the month.
    ``scope`` is tenant, cluster or pool."""

    scope: str
    cluster_id: str | None = None
    cluster: str | None = None
    pool: str | None = None
    usd_month: float
    spent: float = 0.0
    forecast: float = 0.0
    percent: int = 0
    reached: bool = False
    complete: bool = True


class Costs(Model):
    """The sums, in USD, and the lines that they are made of. An estimate from list prices, not a bill.

    A line without a known price leaves no sum; ``known_hour`` and the like say what is known of it. ``not_included`` is
    what is billed besides, by use."""

    month: str
    currency: str = "USD"
    hour: float | None = 0.0
    month_rate: float | None = 0.0
    spent: float | None = 0.0
    forecast: float | None = None
    known_hour: float = 0.0
    known_month_rate: float = 0.0
    known_spent: float = 0.0
    complete: bool = True
    budgets: tuple[Budget, ...] = ()
    not_included: tuple[str, ...] = ()
    lines: tuple[CostLine, ...] = ()


class Metrics(Collection):
    """Numbers of the tenant for monitoring."""

    name = "metrics"

    def text(self) -> str:
        """The text that Prometheus scrapes: a family of samples after the other."""
        return str(self._transport.send("GET", path(self.name)).body)


class CostReports(Collection):
    """Costs of the tenant."""

    name = "costs"

    def get(self, cluster: str | None = None) -> Costs:
        """The costs of everything, or of one ``cluster`` (id or name)."""
        return parsed(Costs, self._transport.send("GET", path(self.name), query={"cluster": cluster}).object())
