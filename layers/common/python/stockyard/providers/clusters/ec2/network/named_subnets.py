"""Subnets of a tenant's VPC that the settings name by zone: whether each does for what it is named for, and whether it
has the tags by which controllers look for subnets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.ports import Finding
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.network import subnets
from stockyard.providers.clouds.aws.network.subnets import Subnet
from stockyard.providers.clusters.ec2.network import tenant_network
from stockyard.providers.clusters.ec2.network.network_configuration import named_subnets
from stockyard.providers.clusters.ec2.network.tenant_network import BALANCER_ADDRESSES, TenantNetwork

CLUSTER_API = "sigs.k8s.io/cluster-api-provider-aws"


def choose(calls: Calls, settings: Mapping[str, Any]) -> TenantNetwork | Finding:
    """The network of these subnets, or the first thing that is wrong with it."""
    vpc = tenant_network.vpc_of(calls, str(settings["vpc_id"]))
    if isinstance(vpc, Finding):
        return vpc
    in_vpc = {subnet.id: subnet for subnet in subnets.of_vpc(calls, str(vpc["VpcId"]))}
    fault = next(_faults(settings, in_vpc), None)
    if fault is not None:
        return fault
    entries = named_subnets(settings)
    of_machines = "public" if settings.get("public_control_plane") else "private"
    places = tuple((str(entry[of_machines]), str(entry["zone"])) for entry in entries)
    public = tuple(str(entry["public"]) for entry in entries if entry.get("public"))
    balanced = public or tuple(str(entry["private"]) for entry in entries)
    return TenantNetwork(
        str(vpc["VpcId"]),
        tenant_network.ranges(vpc),
        places[0][0],
        balanced,
        public=bool(public),
        places=places,
        owner=tenant_network.owner_of(vpc),
        shows_routes=all(subnet.routes.visible for subnet in in_vpc.values()),
    )


def findings(calls: Calls, cluster: Cluster) -> Iterator[Finding]:
    """All faults of the named subnets, and their missing tags."""
    settings = cluster.settings
    vpc = tenant_network.vpc_of(calls, str(settings["vpc_id"]))
    if isinstance(vpc, Finding):
        yield vpc
        return
    in_vpc = {subnet.id: subnet for subnet in subnets.of_vpc(calls, str(vpc["VpcId"]))}
    yield from _faults(settings, in_vpc)
    yield from _untagged(calls, cluster, in_vpc)


def _faults(settings: Mapping[str, Any], in_vpc: Mapping[str, Subnet]) -> Iterator[Finding]:
    needs_public = bool(settings.get("public_control_plane"))
    for pointer, tier, entry in _entries(settings):
        subnet = in_vpc.get(str(entry[tier]))
        fault = _fault(subnet, tier, str(entry["zone"]), f"{settings['vpc_id']}")
        if fault:
            yield Finding(pointer, f"Subnet {entry[tier]} {fault}.")
    for index, entry in enumerate(named_subnets(settings)):
        if needs_public and not entry.get("public"):
            yield Finding(f"/settings/subnets/{index}/public", "public_control_plane needs a public subnet here.")


def _fault(subnet: Subnet | None, tier: str, zone: str, vpc_id: str) -> str | None:
    if subnet is None:
        return f"is not in {vpc_id}"
    if subnet.zone != zone:
        return f"is in {subnet.zone}, not in {zone}"
    if tier == "private":
        return tenant_network.unfit(subnet, wants_public=False)
    if not subnet.routes.public and subnet.routes.visible:
        return "is not public: its default route does not lead to an internet gateway"
    if subnet.free < BALANCER_ADDRESSES:
        return f"has only {subnet.free} free addresses of the {BALANCER_ADDRESSES} that a load balancer needs"
    return None


def _entries(settings: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for index, entry in enumerate(named_subnets(settings)):
        for tier in ("private", "public"):
            if entry.get(tier):
                yield f"/settings/subnets/{index}/{tier}", tier, entry


def _untagged(calls: Calls, cluster: Cluster, in_vpc: Mapping[str, Subnet]) -> Iterator[Finding]:
    """A warning for each tag that a subnet lacks. The cluster may be called by its name or its client id."""
    ids = [str(entry[tier]) for _, tier, entry in _entries(cluster.settings) if str(entry[tier]) in in_vpc]
    described = calls.described_items("describe_subnets", "Subnets", SubnetIds=ids) if ids else []
    carried = {str(item["SubnetId"]): tags.mapping(item.get("Tags")) for item in described}
    names = (cluster.name, cluster.client_id)
    for pointer, tier, entry in _entries(cluster.settings):
        subnet_tags = carried.get(str(entry[tier]))
        if subnet_tags is None:
            continue
        for alternatives in wanted_tags(tier, names):
            if not any(subnet_tags.get(key) == value for key, value in alternatives):
                key, value = alternatives[0]
                yield Finding(pointer, f"Subnet {entry[tier]} lacks the tag {key}={value}.", warning=True)


def wanted_tags(tier: str, names: Sequence[str]) -> list[list[tuple[str, str]]]:
    """The tags that a subnet of this tier should have, each with the ways to write it."""
    of_cluster = [
        [(tags.kubernetes(name), "shared") for name in names],
        [(f"{CLUSTER_API}/cluster/{name}", "owned") for name in names],
    ]
    if tier == "private":
        return of_cluster
    return [[("kubernetes.io/role/elb", "1")], [(f"{CLUSTER_API}/role", "public")], *of_cluster]
