"""The node groups of a cluster on EC2: which provider serves them, and what their floors cost."""

from __future__ import annotations

from collections.abc import Sequence

from stockyard.domain.manifests import ProviderDocument
from stockyard.domain.node_groups import WORKER
from stockyard.domain.node_types import SPOT
from stockyard.domain.prices import PriceItem
from stockyard.domain.records import Cluster
from stockyard.ports import PriceList
from stockyard.providers.clusters.ec2.configuration import region


def provider(cluster: Cluster) -> ProviderDocument:
    """The implicit provider of the cluster's account and region: every type that EC2 has there, also for spot."""
    place = region(cluster)
    block = {
        "cloudAccount": cluster.cloud_account_id,
        "region": place,
        "instanceTypes": ["*"],
        "capacityTypes": ["on-demand", SPOT],
    }
    return ProviderDocument(f"ec2-{cluster.cloud_account_id}-{place}", "ec2", block)


def floor_items(cluster: Cluster, prices: PriceList) -> Sequence[PriceItem]:
    """One line for each worker group with a floor, at the price of its cheapest type on demand. What spot costs is
    known when a node is placed."""
    items = []
    for group in cluster.settings.get("autoscaler_node_groups") or ():
        count = int(group.get("min_size") or 0)
        if group.get("role") != WORKER or not count:
            continue
        offers = [prices.instance(region(cluster), name) for name in group["instance_types"]]
        rates = [offer["usd_hour"] for offer in offers if offer is not None and offer["usd_hour"] is not None]
        rate = min(rates) if len(rates) == len(offers) and group.get("capacity_type") != SPOT else None
        noun = "node" if count == 1 else "nodes"
        items.append(
            PriceItem(f"{count} {noun} of pool {group['name']}", count, None if rate is None else rate * count)
        )
    return items
