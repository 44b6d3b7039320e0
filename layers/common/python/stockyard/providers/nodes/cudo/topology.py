"""Location and reach of a provider's machines: clusters of their own network, and all that have an overlay."""

from __future__ import annotations

from stockyard.domain.clusters import overlay
from stockyard.domain.records import Cluster, NodeEnvironment, NodeProvider
from stockyard.domain.values.requirements import Requirement
from stockyard.errors import NodeCouldNotBeProvisioned
from stockyard.providers.nodes.cudo.configuration import data_center, setting


def location(provider: NodeProvider) -> tuple[str, str]:
    """Data center and cloud account in which the provider has its machines."""
    return data_center(provider), str(setting(provider, "cloudAccount"))


def out_of_reach(provider: NodeProvider, cluster: Cluster | None) -> str | None:
    """See ``ports.nodes.HasTopology.out_of_reach``. Where a cluster has not said yet where it stands, only its account
    is compared; its network tells the rest when the provider is set up for it."""
    if cluster is None:
        return f"Machines of node provider {provider.name} join a cluster; the claim names none."
    data_center_id, account = location(provider)
    if is_at_home(provider, cluster) or cluster.settings.get(overlay.SETTING):
        return None
    home = f"in {cluster.place} of cloud account" if cluster.place else "in cloud account"
    return (
        f"Node provider {provider.name} is in {data_center_id} of cloud account {account}, the cluster {home}"
        f" {cluster.cloud_account_id}. Machines of another network need an overlay, which a cluster has from its"
        " creation."
    )


def is_at_home(provider: NodeProvider, cluster: Cluster) -> bool:
    """Whether the provider's machines stand in the cluster's own network. A cluster of another cloud has another
    account."""
    data_center_id, account = location(provider)
    return account == str(cluster.cloud_account_id) and cluster.place in ("", data_center_id)


def check(provider: NodeProvider, cluster: Cluster | None) -> Cluster:
    """The cluster. Raises ``NodeCouldNotBeProvisioned`` where the machines would not be in its network."""
    why = out_of_reach(provider, cluster)
    if cluster is None or why:
        raise NodeCouldNotBeProvisioned(why or "The claim has no cluster.")
    return cluster


def out_of_zone(provider: NodeProvider, environment: NodeEnvironment | None, requirement: Requirement) -> str | None:  # noqa: ARG001
    """See ``ports.nodes.HasTopology.out_of_zone``. A data center is region and zone."""
    data_center_id = data_center(provider)
    if requirement.has(data_center_id):
        return None
    return f"Machines of node provider {provider.name} stand in {data_center_id}; the claim asks for another zone."


def zones(provider: NodeProvider, environment: NodeEnvironment | None) -> frozenset[str]:  # noqa: ARG001
    """See ``ports.nodes.HasTopology.zones``."""
    return frozenset((data_center(provider),))
