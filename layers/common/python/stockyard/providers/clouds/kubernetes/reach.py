"""Reach of machines that stand in a Kubernetes host: its network is private, unless the provider says otherwise."""

from __future__ import annotations

from stockyard.domain.clusters import overlay
from stockyard.domain.nodes.declared_types import block_of
from stockyard.domain.records import Cluster, NodeEnvironment, NodeProvider
from stockyard.domain.values.requirements import Requirement
from stockyard.errors import NodeCouldNotBeProvisioned

NETWORK = "stockyard.dev/network"
"""The property of a provider that says of which kind the network of its machines is."""
ROUTED, PRIVATE = "routed", "private"
"""``routed``: machines and clusters reach each other, both ways; ``private``: nobody outside reaches the machines."""


def location(provider: NodeProvider) -> tuple[str, str]:
    """Namespace and host of the provider's machines."""
    reference = block_of(provider)["clusterRef"]
    return str(reference["namespace"]), str(reference["cluster"])


def network_fault(provider: NodeProvider) -> str | None:
    """Fault of the property; None for none."""
    written = provider.properties.get(NETWORK)
    return None if written in (None, ROUTED, PRIVATE) else f"{NETWORK}: must be {ROUTED} or {PRIVATE}."


def out_of_reach(provider: NodeProvider, cluster: Cluster | None) -> str | None:
    """See ``ports.nodes.HasTopology.out_of_reach``: the same host is in reach, any cluster is where the network is
    routed."""
    if cluster is None:
        return f"Machines of node provider {provider.name} join a cluster; the claim names none."
    if cluster.settings.get(overlay.SETTING):
        return None  # who takes part in it, reaches it from everywhere
    _, host = location(provider)
    is_same_host = cluster.provider == "kubernetes" and str(cluster.cloud_account_id) == host
    if is_same_host or host in (cluster.id, cluster.name) or provider.properties.get(NETWORK) == ROUTED:
        return None
    return (
        f"Machines of node provider {provider.name} stand in the private network of host {host}, which needs an overlay"
        f" to reach the cluster. Where the network is routed to it, the provider says so by {NETWORK}: {ROUTED}."
    )


def check(provider: NodeProvider, cluster: Cluster | None) -> Cluster:
    """The cluster. Raises ``NodeCouldNotBeProvisioned`` where the machines would not reach it."""
    why = out_of_reach(provider, cluster)
    if cluster is None or why:
        raise NodeCouldNotBeProvisioned(why or "The claim has no cluster.")
    return cluster


def out_of_zone(
    provider: NodeProvider,  # noqa: ARG001 - the port names them
    environment: NodeEnvironment | None,  # noqa: ARG001
    requirement: Requirement,  # noqa: ARG001
) -> str | None:
    """See ``ports.nodes.HasTopology.out_of_zone``: zones are written on node types, and chosen by them."""
    return None


def zones(provider: NodeProvider, environment: NodeEnvironment | None) -> frozenset[str]:  # noqa: ARG001
    """See ``ports.nodes.HasTopology.zones``: a host does not tell them."""
    return frozenset()
