"""Costs of a tenant as they were a moment ago, for lists and pages that are looked at again and again.

A report adds up everything of the tenant. It is kept, so that all who look within a minute read one record instead. Of
a large tenant the sums are kept: to make the report of them takes less than to keep it too.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from stockyard.domain.cost_records import CostReport
from stockyard.domain.month_budgets import month_start
from stockyard.domain.values import times
from stockyard.domain.values.prices import HOURS_A_MONTH
from stockyard.errors import StoreUnavailable
from stockyard.operations.costs.kept_sums import is_large, recent_sums
from stockyard.operations.costs.parts import NODES, PastCost
from stockyard.operations.costs.report import Lines, report
from stockyard.operations.costs.tenant_sums import TenantSums
from stockyard.operations.services import Services
from stockyard.ports import Put

LIST_SECONDS = 60
"""How old the costs in a list of clusters may be."""
MOST_BYTES = 300_000
"""A report that is longer when it is compressed is not kept: a record has at most 400 KB."""
_ID = "tenant"


def recent_report(services: Services, max_age: int) -> dict[str, Any]:
    """The report of a tenant that is not large as it was at most ``max_age`` seconds ago; made anew, and kept, where
    none is so young. Of two that are made at the same time the last is kept: both are right."""
    oldest = times.to_text(services.clock.now() - timedelta(seconds=max_age))
    record = services.store.get(CostReport, _ID)
    if record is not None and record.made_at >= oldest:
        document: dict[str, Any] = json.loads(zlib.decompress(record.data))
        return document
    document = report(services)
    keep(services, document)
    return document


def keep(services: Services, document: dict[str, Any]) -> None:
    """Keep a report of the whole tenant that is not large for whoever looks next. One that is too long is not kept."""
    data = zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 6)
    if len(data) <= MOST_BYTES:
        services.store.commit(Put(CostReport(_ID, str(document["until"]), data)))


def costs_by_cluster(services: Services) -> Callable[[str], dict[str, Any] | None]:
    """Costs of clusters, each by its id; None for one of which nothing costs. At most ``LIST_SECONDS`` old, or as old
    as the sums of a large tenant. While those are being made nothing is known of any cluster."""
    if not is_large(services):
        return by_cluster(recent_report(services, LIST_SECONDS)).get
    try:
        sums = recent_sums(services)
    except StoreUnavailable:
        return lambda _: None
    return _OfClusters(sums, services.now()).of


class _OfClusters:
    """Costs of clusters from the sums of their tenant, of each when it is shown."""

    def __init__(self, sums: TenantSums, now: str) -> None:
        self._sums, self._now, self._late = sums, now, sums.clusters_as_of()
        self._past: dict[str, list[PastCost]] = {}
        for past in sums.spent.values():
            self._past.setdefault(past.line[1], []).append(past)

    def of(self, cluster_id: str) -> dict[str, Any] | None:
        """The cluster's costs as ``ClusterCostsView`` documents."""
        cluster = self._sums.clusters.get(cluster_id)
        lines = Lines(month_start(self._now), self._now)
        if cluster is not None:
            lines.add_items(cluster)
            lines.add_nodes(cluster.groups)
        for past in self._past.get(cluster_id, ()):
            lines.add_past(past)
        if not lines.lines:
            return None
        hour, spent = lines.total("hour"), lines.total("spent")
        return {
            "nodes": sum(line.quantity for key, line in lines.lines.items() if key[0] == NODES),
            "hour": round(hour, 6),
            "month_rate": round(hour * HOURS_A_MONTH, 2),
            "spent": round(spent, 4),
            "complete": all(line.complete for line in lines.lines.values()),
            "as_of": self._late.get(cluster_id, self._sums.at),
        }


def by_cluster(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Sums of a report's lines by the id of the cluster, as ``ClusterCostsView`` documents."""
    sums: dict[str, dict[str, Any]] = {}
    for line in document["lines"]:
        empty = {"nodes": 0, "hour": 0.0, "month_rate": 0.0, "spent": 0.0, "complete": True, "as_of": document["until"]}
        own = sums.setdefault(line["cluster_id"] or "", empty)
        own["nodes"] += line["quantity"] if line["kind"] == "nodes" else 0
        own["complete"] = own["complete"] and line["spent"] is not None
        for name in ("hour", "month_rate", "spent"):
            own[name] = round(own[name] + (line[name] or 0.0), 6)
    return sums
