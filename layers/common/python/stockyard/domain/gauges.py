"""Numbers of a tenant that monitoring reads: the families, and the samples of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Gauge:
    """A family of samples. ``name`` ends with ``unit`` where it has one; ``labels`` are those that samples may have."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    unit: str | None = None


class Sample(NamedTuple):
    """One number of the family called ``gauge``. ``labels`` have no entry where there is nothing to say."""

    gauge: str
    value: float
    labels: Mapping[str, str] = MappingProxyType({})


_CLUSTER = ("cluster", "cluster_id")
_BUDGET = ("scope", *_CLUSTER, "pool")
CLUSTERS = Gauge("stockyard_clusters", "Clusters by their status.", ("status",))
NODES = Gauge(
    "stockyard_nodes",
    "Nodes that stand or are about to, as the costs count them; of no cluster without its labels.",
    (*_CLUSTER, "capacity_type"),
)
CLAIMS = Gauge("stockyard_node_claims", "Node claims by phase, those on their way out apart.", (*_CLUSTER, "phase"))
WAITING = Gauge("stockyard_waiting_claims", "Node claims that no node type was found for yet.", _CLUSTER)
COST_HOUR = Gauge(
    "stockyard_cost_hour_usd",
    "List price of an hour of what stands, as far as it is known.",
    (*_CLUSTER, "kind"),
    "usd",
)
SPENT = Gauge(
    "stockyard_month_spent_usd",
    "Cost of this month so far, as far as it is known; what is gone without labels of a cluster.",
    (*_CLUSTER, "kind"),
    "usd",
)
FORECAST = Gauge("stockyard_month_forecast_usd", "Cost of the month at its end, if nothing changes.", (), "usd")
COMPLETE = Gauge("stockyard_cost_complete", "1 where the price of everything is known, else 0.")
SAVED = Gauge(
    "stockyard_saved_hour_usd", "USD an hour that decisions of this month to let nodes go have saved.", _CLUSTER, "usd"
)
POSSIBLE = Gauge(
    "stockyard_possible_saving_hour_usd", "USD an hour that could be saved at best, when last looked.", _CLUSTER, "usd"
)
BUDGET = Gauge("stockyard_budget_usd", "Budget of the month.", _BUDGET, "usd")
BUDGET_SPENT = Gauge("stockyard_budget_spent_usd", "Cost so far that counts for the budget.", _BUDGET, "usd")
BUDGET_FORECAST = Gauge("stockyard_budget_forecast_usd", "Forecast that counts for the budget.", _BUDGET, "usd")
OPERATIONS = Gauge("stockyard_operations", "Operations that began in the last day, by their status.", ("status",))
OPERATIONS_SINCE = Gauge(
    "stockyard_operations_since_timestamp_seconds",
    "Since when operations are counted: less than a day where there were very many.",
    (),
    "seconds",
)
AS_OF = Gauge("stockyard_as_of_timestamp_seconds", "Moment that all these numbers are of.", (), "seconds")
GAUGES = (
    CLUSTERS,
    NODES,
    CLAIMS,
    WAITING,
    COST_HOUR,
    SPENT,
    FORECAST,
    COMPLETE,
    SAVED,
    POSSIBLE,
    BUDGET,
    BUDGET_SPENT,
    BUDGET_FORECAST,
    OPERATIONS,
    OPERATIONS_SINCE,
    AS_OF,
)
"""All families, in the order in which they are written."""
