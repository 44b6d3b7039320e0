"""Whether the machines of a provider can be nodes of a cluster, by their networks."""

from __future__ import annotations

from stockyard.domain.clusters import overlay
from stockyard.domain.records import Cluster, NodeProvider
from stockyard.operations.services import Services
from stockyard.ports.clusters import BillsEgress
from stockyard.ports.nodes import HasTopology, JoinsOverlay


def out_of_reach(source: object, provider: NodeProvider, cluster: Cluster | None) -> str | None:
    """Reason why machines of the provider could not reach the cluster; None when they can. ``source`` is the provider's
    source of nodes, which may be none."""
    if cluster is not None and cluster.settings.get(overlay.SETTING) and not isinstance(source, JoinsOverlay):
        return f"Machines of node provider {provider.name} take part in no overlay, and the cluster has one."
    return source.out_of_reach(provider, cluster) if isinstance(source, HasTopology) else None


def network_of(source: object, provider: NodeProvider) -> str:
    """Words for the network that machines of the provider stand in."""
    if not isinstance(source, HasTopology):
        return f"{provider.kind} of node provider {provider.name}"
    place, account = source.location(provider)
    return f"{provider.kind} {place} of cloud account {account}"


def egress_text(services: Services, cluster: Cluster, provider: NodeProvider) -> str | None:
    """Words for what a cloud bills for data that a cluster with an overlay sends to machines of the provider; None
    where they stand in the cluster's own network, and where nothing is billed. It is in no price of a node: nobody
    knows the amount."""
    source: object = services.node_sources.get(provider.kind)
    seller: object = services.cluster_drivers.get(cluster.driver)
    if not (overlay.range_of(cluster.settings) and isinstance(seller, BillsEgress) and isinstance(source, HasTopology)):
        return None
    place = cluster.place or str(cluster.settings.get("region_name") or "")
    if source.location(provider) == (place, str(cluster.cloud_account_id)):
        return None
    return f"what the cluster's own network sends it costs about {seller.egress_usd} USD a GB"
