"""Whether the machines of a provider can be nodes of a cluster, by their networks."""

from __future__ import annotations

from stockyard.domain.clusters import overlay
from stockyard.domain.records import Cluster, NodeProvider
from stockyard.operations.services import Services
from stockyard.ports.nodes import NodeSource


def out_of_reach(source: NodeSource | None, provider: NodeProvider, cluster: Cluster | None) -> str | None:
    """Reason why machines of the provider could not reach the cluster; None when they can. ``source`` is the provider's
    source of nodes, which may be none."""
    joins_overlay = source is not None and source.joins_overlay
    if cluster is not None and cluster.settings.get(overlay.SETTING) and not joins_overlay:
        return f"Machines of node provider {provider.name} take part in no overlay, and the cluster has one."
    return source.out_of_reach(provider, cluster) if source is not None else None


def network_of(source: NodeSource | None, provider: NodeProvider) -> str:
    """Words for the network that machines of the provider stand in."""
    location = source.location(provider) if source is not None else None
    if location is None:
        return f"{provider.kind} of node provider {provider.name}"
    region, account = location
    return f"{provider.kind} {region} of cloud account {account}"


def egress_text(services: Services, cluster: Cluster, provider: NodeProvider) -> str | None:
    """Words for what a cloud bills for data that a cluster with an overlay sends to machines of the provider; None
    where they stand in the cluster's own network, and where nothing is billed. It is in no price of a node: nobody
    knows the amount."""
    source, driver = services.node_sources.get(provider.kind), services.cluster_drivers.get(cluster.driver)
    egress_usd = driver.egress_usd if driver is not None else None
    location = source.location(provider) if source is not None else None
    if not overlay.range_of(cluster.settings) or egress_usd is None or location is None:
        return None
    region = cluster.place or str(cluster.settings.get("region_name") or "")
    if location == (region, str(cluster.cloud_account_id)):
        return None
    return f"what the cluster's own network sends it costs about {egress_usd} USD a GB"
