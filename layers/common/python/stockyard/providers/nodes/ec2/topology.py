"""Location and reach of a provider's machines: without an overlay, clusters of their own network."""

from __future__ import annotations

from collections.abc import Mapping

from stockyard.domain.nodes.records import NodeEnvironment, NodeProvider
from stockyard.domain.records import Cluster
from stockyard.domain.values.requirements import Requirement
from stockyard.errors import NodeCouldNotBeProvisioned
from stockyard.providers.clouds.aws import DEFAULT_REGION
from stockyard.providers.clouds.aws.catalog.images import architecture_of
from stockyard.providers.nodes.ec2 import node_class
from stockyard.providers.nodes.ec2.configuration import region, setting


def location(provider: NodeProvider) -> tuple[str, str]:
    """Region and cloud account in which the provider has its machines."""
    return region(provider), str(setting(provider, "cloudAccount"))


def out_of_reach(provider: NodeProvider, cluster: Cluster | None) -> str | None:
    """See ``ports.nodes.HasTopology.out_of_reach``."""
    if cluster is None:
        return f"Machines of node provider {provider.name} join a cluster; the claim names none."
    there = location(provider)
    # A cluster of another cloud stands in no region, and in an account of that cloud.
    cluster_region = cluster.place or str(cluster.settings.get("region_name") or DEFAULT_REGION)
    home = (cluster_region, str(cluster.cloud_account_id))
    if there == home:
        return None
    return (
        f"Node provider {provider.name} is in {there[0]} of cloud account {there[1]}, the cluster in {home[0]} of"
        f" cloud account {home[1]}. Machines on EC2 stand in the VPC of their cluster, also where that has an overlay."
    )


def check(provider: NodeProvider, cluster: Cluster) -> None:
    """Raise ``NodeCouldNotBeProvisioned`` when the provider's machines would not be in the cluster's own network."""
    why = out_of_reach(provider, cluster)
    if why:
        raise NodeCouldNotBeProvisioned(why)


def zones_of(provider: NodeProvider, environment: NodeEnvironment | None) -> frozenset[str]:
    """The zones in which a cluster has subnets for the provider's machines, as its environment found them.

    Empty while that is not known: there is no environment yet, or the provider's document has changed since.
    """
    outputs = environment.outputs if environment is not None else {}
    if outputs.get("provider_generation") != str(provider.generation):
        return frozenset()
    return frozenset(node_class.of_facts(outputs).by_zone)


def architectures(provider: NodeProvider, environment: NodeEnvironment | None) -> frozenset[str]:
    """See ``ports.nodes.NeedsImages``: as the cluster's environment found the images, for the document as it is."""
    if environment is None or not zones_of(provider, environment):
        return frozenset()
    return frozenset(map(architecture_of, node_class.of_facts(environment.outputs).images))


def zone_ids(provider: NodeProvider, environment: NodeEnvironment | None) -> Mapping[str, str]:
    """See ``ports.nodes.NamesZones.zone_ids``: as the subnets of the cluster's nodes tell them."""
    known_zones = zones_of(provider, environment)
    if environment is None or not known_zones:
        return {}
    return node_class.of_facts(environment.outputs).zone_ids


def out_of_zone(provider: NodeProvider, environment: NodeEnvironment | None, requirement: Requirement) -> str | None:
    """See ``ports.nodes.HasTopology.out_of_zone``. While the subnets are not known, the names of zones tell their
    region."""
    zones = zones_of(provider, environment)
    if zones:
        area, can = ", ".join(sorted(zones)), any(requirement.has(zone) for zone in zones)
    else:
        area = region(provider)
        can = requirement.complement or any(zone.startswith(area) for zone in requirement.values)
    return (
        None if can else f"Machines of node provider {provider.name} stand in {area}; the claim asks for another zone."
    )
