"""Clusters and zones in which the machines of a provider's node groups stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stockyard.domain.nodes.declared_types import block_of
from stockyard.domain.records import Cluster, NodeEnvironment, NodeProvider
from stockyard.domain.values.requirements import Requirement
from stockyard.errors import NodeCouldNotBeProvisioned
from stockyard.providers.clouds.aws import DEFAULT_REGION
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.network import subnets
from stockyard.providers.clouds.aws.resources.child_names import cluster_name
from stockyard.providers.nodes.eks.configuration import region

DRIVER = "eks"
"""What a cluster's record calls the driver of clusters on EKS."""
ZONES, GENERATION = "zones", "provider_generation"
"""Outputs of an environment: the zones of the cluster's subnets with their ids, and what they were found for."""


def location(provider: NodeProvider) -> tuple[str, str]:
    """Region and cloud account in which the provider has its machines."""
    return region(provider), str(block_of(provider).get("cloudAccount"))


def out_of_reach(provider: NodeProvider, cluster: Cluster | None) -> str | None:
    """See ``ports.nodes.HasTopology.out_of_reach``."""
    if cluster is None:
        return f"Machines of node provider {provider.name} are of a cluster's node groups; the claim names none."
    if cluster.driver != DRIVER:
        return f"Node provider {provider.name} serves node groups of clusters on EKS; {cluster.name} is none of them."
    there = location(provider)
    home = (str(cluster.settings.get("region_name") or DEFAULT_REGION), str(cluster.cloud_account_id))
    if there == home:
        return None
    return (
        f"Node provider {provider.name} is in {there[0]} of cloud account {there[1]}, the cluster's node groups are in"
        f" {home[0]} of cloud account {home[1]}."
    )


def check(provider: NodeProvider, cluster: Cluster | None) -> Cluster:
    """The cluster. ``NodeCouldNotBeProvisioned`` when its node groups are not the provider's."""
    why = out_of_reach(provider, cluster)
    if why or cluster is None:
        raise NodeCouldNotBeProvisioned(why or "The claim has no cluster.")
    return cluster


def find(calls: Calls, cluster: Cluster, provider: NodeProvider) -> dict[str, str]:
    """The outputs of an environment, as EKS and EC2 show them."""
    shown_cluster = calls.call("eks", "describe_cluster", name=cluster_name(cluster))["cluster"]
    subnet_ids: Sequence[str] = shown_cluster["resourcesVpcConfig"]["subnetIds"]
    described = calls.call("ec2", "describe_subnets", SubnetIds=list(subnet_ids))["Subnets"]
    zones = {subnet.zone: subnet.zone_id for subnet in map(subnets.read, described)}
    return {
        ZONES: ",".join(f"{zone}={zone_id}" for zone, zone_id in sorted(zones.items())),
        GENERATION: str(provider.generation),
    }


def zones(provider: NodeProvider, environment: NodeEnvironment | None) -> frozenset[str]:
    """See ``ports.nodes.HasTopology.zones``."""
    outputs: Mapping[str, str] = environment.outputs if environment is not None else {}
    if outputs.get(GENERATION) != str(provider.generation):
        return frozenset()
    return frozenset(entry.partition("=")[0] for entry in outputs[ZONES].split(",") if entry)


def zone_ids(provider: NodeProvider, environment: NodeEnvironment | None) -> Mapping[str, str]:
    """See ``ports.nodes.NamesZones.zone_ids``."""
    if environment is None or not zones(provider, environment):
        return {}
    entries = (entry.partition("=") for entry in environment.outputs[ZONES].split(",") if entry)
    return {zone: zone_id for zone, _, zone_id in entries if zone_id}


def out_of_zone(provider: NodeProvider, environment: NodeEnvironment | None, requirement: Requirement) -> str | None:
    """See ``ports.nodes.HasTopology.out_of_zone``. While the subnets are not known, the names of zones tell their
    region."""
    known_zones = zones(provider, environment)
    if known_zones:
        area, can = ", ".join(sorted(known_zones)), any(requirement.has(zone) for zone in known_zones)
    else:
        area = region(provider)
        can = requirement.complement or any(zone.startswith(area) for zone in requirement.values)
    return (
        None if can else f"Machines of node provider {provider.name} stand in {area}; the claim asks for another zone."
    )
