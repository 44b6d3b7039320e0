"""Whether the machines of a provider can be nodes of a cluster, by their networks."""

from __future__ import annotations

from stockyard.domain.clusters import overlay
from stockyard.domain.records import Cluster, NodeProvider
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
