"""Keeps a cluster's costs beyond the life of its record, by the same write that removes the record."""

from __future__ import annotations

from stockyard.domain.cost_records import ALL_BUT_NODES, Usage, usage_id
from stockyard.domain.records import Cluster
from stockyard.operations.costs.parts import price_items
from stockyard.operations.pricing import price
from stockyard.operations.services import Services
from stockyard.ports import Put, Write


def cluster_usage(services: Services, cluster: Cluster) -> list[Write]:
    """The cost of the cluster until now, without nodes, at the price of its present settings; nothing for one that got
    no endpoint."""
    if cluster.endpoint is None or cluster.driver not in services.cluster_drivers:
        return []
    now, total = services.now(), price(price_items(services, cluster))
    usage = Usage(
        id=usage_id(now, cluster.id),
        cluster_id=cluster.id,
        cluster=cluster.name,
        pool="",
        type=ALL_BUT_NODES,
        capacity_type="",
        usd_hour=total["hour"] if total["complete"] else None,
        since=cluster.created_at,
        until=now,
    )
    return [Put(usage)]
