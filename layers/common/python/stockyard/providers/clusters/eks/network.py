"""The network phase: a VPC with a public and a private subnet in each zone. Machines are in the private ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.errors import VendorRefused
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.network import own_network
from stockyard.providers.clouds.aws.network.security_groups import open_to_itself
from stockyard.providers.clusters.eks import layout, names
from stockyard.providers.clusters.eks.building import Builder, DesiredResource, vendor_id

PHASE = "network"
PUBLIC, PRIVATE = "public", "private"
WITHOUT_CONTROL_PLANES = frozenset({"use1-az3", "usw1-az2", "cac1-az3"})
"""Zones in which EKS takes no subnets of a cluster, by the id that is the same in all accounts."""
_FOR_BALANCERS = {PUBLIC: "kubernetes.io/role/elb", PRIVATE: "kubernetes.io/role/internal-elb"}
"""The tag by which controllers find the subnets for load balancers: those before the internet, and internal ones."""


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet as the ledger knows it."""

    tier: str
    zone: str
    id: str


def ensure(builder: Builder) -> Outcome:
    """Make the network. Not done while a NAT gateway comes up."""
    cluster = builder.work.cluster
    vpc = own_network.vpc(builder, names.part(cluster, "vpc"), vpc_cidr(cluster))
    gateway = own_network.internet_gateway(builder, names.part(cluster, "igw"), vpc)
    subnets = _subnets(builder, vpc)
    public, private = ([subnet for subnet in subnets if subnet.tier == tier] for tier in (PUBLIC, PRIVATE))
    name = names.part(cluster, "public-routes")
    tables = [own_network.route_table(builder, PUBLIC, name, vpc, [s.id for s in public], {"GatewayId": gateway})]
    gateways = [
        own_network.nat_gateway(builder, names.part(cluster, f"nat-{subnet.zone}"), subnet.id, subnet.zone, subnet.zone)
        for subnet in (public if has_nat_in_each_zone(cluster) else public[:1])
    ]
    pending = [nat.vendor_id for nat in gateways if nat.pending]
    if pending:
        return Outcome(False, f"NAT gateways come up: {', '.join(pending)}")
    served = [[subnet] for subnet in private] if has_nat_in_each_zone(cluster) else [private]
    for nat, own in zip(gateways, served, strict=True):
        key = PRIVATE if len(gateways) == 1 else f"{PRIVATE}-{own[0].zone}"
        target = {"NatGatewayId": nat.vendor_id}
        ids = [subnet.id for subnet in own]
        tables.append(own_network.route_table(builder, key, names.part(cluster, f"{key}-routes"), vpc, ids, target))
    note = own_network.s3_endpoint(builder, names.part(cluster, "s3"), vpc, tables)
    return Outcome(True, f"{vpc} with {len(subnets)} subnets{note}")


def vpc_cidr(cluster: Cluster) -> str:
    """The range of the cluster's VPC."""
    return str(cluster.settings["vpc_cidr"])


def has_nat_in_each_zone(cluster: Cluster) -> bool:
    """Whether each zone has a NAT gateway, so that none depends on another."""
    return cluster.settings.get("nat_gateways") == "zone"


def vpc_id(builder: Builder) -> str:
    """The VPC that this phase has made."""
    return vendor_id(builder, ec2_kinds.VPC.name, "main", PHASE)


def subnets_of(builder: Builder, tier: str = "", zones: Sequence[str] = ()) -> list[Subnet]:
    """Subnets that this phase has made, in the order of the settings. Raises ``VendorRefused`` when that is not all,
    and for a zone that has no subnet."""
    lines = [line for line in builder.work.ledger.lines() if line.kind == ec2_kinds.SUBNET.name]
    by_key = {line.key: line for line in lines if line.state == "made"}
    subnets = []
    for key in _keys(builder.work.cluster):
        if key not in by_key:
            raise VendorRefused(f"subnet {key} is not on the ledger", hint=f"Resume from the phase {PHASE}.")
        subnets.append(Subnet(key.partition("-")[0], str(by_key[key].detail["zone"]), by_key[key].vendor_id))
    strange = sorted(set(zones) - {subnet.zone for subnet in subnets})
    if strange:
        raise VendorRefused(
            f"the cluster has no subnet in {', '.join(strange)}",
            hint=f"Its zones are {', '.join(sorted({subnet.zone for subnet in subnets}))}.",
        )
    return [s for s in subnets if tier in ("", s.tier) and (not zones or s.zone in zones)]


def security_group(
    builder: Builder, key: str, name: str, description: str, rules: Sequence[Mapping[str, Any]] = ()
) -> str:
    """A group in the VPC that lets these in; without rules its members reach each other by every protocol."""
    described: dict[str, Any] = {"GroupName": name, "Description": description, "VpcId": vpc_id(builder)}
    create = builder.creation("create_security_group", "security-group", "GroupId", **described)

    def configure(group: str) -> None:
        open_to_itself(builder.calls, group, rules)

    return builder.want(DesiredResource(ec2_kinds.SECURITY_GROUP, key, name, create, configure)).vendor_id


def chosen_zones(builder: Builder) -> list[str]:
    """The zones of the subnets: those of the settings, else the first ones of the region by name."""
    settings = builder.work.cluster.settings
    if settings.get("zones"):
        return [str(zone) for zone in settings["zones"]]
    here = [
        str(zone["ZoneName"])
        for zone in own_network.available_zones(builder.calls)
        if zone.get("ZoneId") not in WITHOUT_CONTROL_PLANES
    ]
    count = len(settings["subnet_cidrs"])
    if len(here) < count:
        raise VendorRefused(
            f"{builder.calls.region} has {len(here)} zones and the cluster {count} subnets",
            hint="Name fewer subnets, or choose another region.",
        )
    return here[:count]


def _keys(cluster: Cluster) -> list[str]:
    return [f"{tier}-{index}" for tier in (PUBLIC, PRIVATE) for index in range(len(cluster.settings["subnet_cidrs"]))]


def _subnets(builder: Builder, vpc: str) -> list[Subnet]:
    cluster = builder.work.cluster
    public = list(cluster.settings["subnet_cidrs"])
    cidrs = [*public, *layout.private_cidrs(vpc_cidr(cluster), public)]
    zones: list[str] = []
    for index, (key, cidr) in enumerate(zip(_keys(cluster), cidrs, strict=True)):
        line = builder.work.ledger.find(ec2_kinds.SUBNET.name, key)
        if line is None and not zones:
            zones = chosen_zones(builder)
        zone = str(line.detail["zone"]) if line else zones[index % len(public)]
        _subnet(builder, key, vpc, cidr, zone)
    return subnets_of(builder)


def _subnet(builder: Builder, key: str, vpc: str, cidr: str, zone: str) -> None:
    cluster = builder.work.cluster
    tier = key.partition("-")[0]
    name = names.part(cluster, f"subnet-{zone}" if tier == PUBLIC else f"private-subnet-{zone}")
    # Shared, as EKS's documentation has it: nobody but us may remove it.
    extra = {_FOR_BALANCERS[tier]: "1", tags.kubernetes(names.cluster_name(cluster)): "shared"}
    where: dict[str, Any] = {"VpcId": vpc, "CidrBlock": cidr, "AvailabilityZone": zone}
    create = builder.creation("create_subnet", "subnet", "Subnet", "SubnetId", **where)

    def configure(subnet: str) -> None:
        if tier == PUBLIC:
            changed = {"Value": True}
            builder.calls.call("ec2", "modify_subnet_attribute", SubnetId=subnet, MapPublicIpOnLaunch=changed)

    builder.want(
        DesiredResource(ec2_kinds.SUBNET, key, name, create, configure, detail={"zone": zone}, extra_tags=extra)
    )
