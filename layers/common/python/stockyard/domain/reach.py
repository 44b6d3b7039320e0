"""Which providers' machines can reach a cluster: without an overlay, those of its own network."""

from __future__ import annotations

from stockyard.domain.declared_types import block_of
from stockyard.domain.records import Cluster, NodeProvider

_EC2_REGION = "us-east-1"
"""Of a cluster or a provider that names none."""


def place_of(provider: NodeProvider) -> tuple[str, str]:
    """Region and cloud account in which the provider has its machines."""
    block = block_of(provider)
    return str(block.get("region") or _EC2_REGION), str(block.get("cloudAccount"))


def out_of_reach(provider: NodeProvider, cluster: Cluster | None) -> str:
    """Why a machine of the provider could not reach the cluster; empty when it can.

    Machines of EC2 stand in the network of their cluster, in the same account and region. Simulated ones are anywhere.
    """
    if provider.kind != "ec2":
        return ""
    if cluster is None:
        return f"Machines of node provider {provider.name} join a cluster; the claim names none."
    there = place_of(provider)
    home = (str(cluster.settings.get("region_name") or _EC2_REGION), str(cluster.cloud_account_id))
    if there == home:
        return ""
    return (
        f"Node provider {provider.name} is in {there[0]} of cloud account {there[1]}, the cluster in {home[0]} of"
        f" cloud account {home[1]}. Machines of another network need an overlay, which is not built yet."
    )
