"""Costs of a tenant as they were a moment ago, for lists and pages that are looked at again and again.

A report adds up everything of the tenant. It is kept, so that all who look within a minute read one record instead.
"""

from __future__ import annotations

import json
import zlib
from datetime import timedelta
from typing import Any

from stockyard.domain.cost_records import CostReport
from stockyard.domain.values import times
from stockyard.operations.costs.report import report
from stockyard.operations.services import Services
from stockyard.ports import Put

LIST_SECONDS = 60
"""How old the costs in a list of clusters may be."""
MOST_BYTES = 300_000
"""A report that is longer when it is compressed is not kept: a record has at most 400 KB."""
_ID = "tenant"


def recent_report(services: Services, max_age: int) -> dict[str, Any]:
    """The report of ``report`` as it was at most ``max_age`` seconds ago; made anew, and kept, where none is so
    young. Of two that are made at the same time the last is kept: both are right."""
    oldest = times.to_text(services.clock.now() - timedelta(seconds=max_age))
    record = services.store.get(CostReport, _ID)
    if record is not None and record.made_at >= oldest:
        document: dict[str, Any] = json.loads(zlib.decompress(record.data))
        return document
    document = report(services)
    keep(services, document)
    return document


def keep(services: Services, document: dict[str, Any]) -> None:
    """Keep a report of the whole tenant for whoever looks next. One that is too long is not kept."""
    data = zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 6)
    if len(data) <= MOST_BYTES:
        services.store.commit(Put(CostReport(_ID, str(document["until"]), data)))


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
