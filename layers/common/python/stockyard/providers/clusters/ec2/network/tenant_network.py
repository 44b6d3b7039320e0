"""A tenant's own VPC and subnet: which one is used, the same each time, and whether it can be used at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from stockyard.domain.clusters.control_plane import POD_CIDR, SERVICE_CIDR
from stockyard.ports import Finding
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.network.subnets import Subnet, of_vpc
from stockyard.providers.clusters.ec2.network.network_configuration import zone_count

FREE_ADDRESSES = 16
"""Fewer than this and the subnet is full for our purpose."""
BALANCER_ADDRESSES = 8
"""A load balancer wants that many free addresses in each of its subnets."""
_VPC, _SUBNET = "/settings/vpc_id", "/settings/subnet_id"


@dataclass(frozen=True, slots=True)
class TenantNetwork:
    """The network that is used. ``cidrs`` are all ranges of the VPC; ``balanced`` the load balancer's subnets.

    With ``public`` these are public, the first in the zone of ``subnet_id``: a target in a zone that the balancer does
    not cover gets no traffic.
    """

    vpc_id: str
    cidrs: tuple[str, ...]
    subnet_id: str
    balanced: tuple[str, ...]
    public: bool
    places: tuple[tuple[str, str], ...] = ()
    """The subnets that a control plane can stand in, each with its zone, in the order in which they are tried."""
    owner: str = ""
    """The account that the VPC is of; empty where that is not known."""
    shows_routes: bool = True
    """Whether we see where its traffic goes."""

    @property
    def machine_subnets(self) -> tuple[str, ...]:
        """The ids of those."""
        return tuple(subnet for subnet, _ in self.places)


def choose(calls: Calls, settings: Mapping[str, Any]) -> TenantNetwork | Finding:
    """The network of ``vpc_id`` and ``subnet_id``, at least one of which is set, or what is wrong with it."""
    vpc_id, subnet_id = str(settings.get("vpc_id") or ""), str(settings.get("subnet_id") or "")
    if subnet_id:
        subnets = calls.described_items("describe_subnets", "Subnets", SubnetIds=[subnet_id])
        if not subnets:
            return Finding(_SUBNET, f"There is no subnet {subnet_id} in {calls.region}.")
        owner = str(subnets[0]["VpcId"])
        if vpc_id and vpc_id != owner:
            return Finding(_SUBNET, f"Subnet {subnet_id} belongs to {owner}, not to {vpc_id}.")
        vpc_id = owner
    pointer = _SUBNET if subnet_id else _VPC
    vpc = vpc_of(calls, vpc_id, pointer)
    if isinstance(vpc, Finding):
        return vpc
    zones = frozenset(str(zone) for zone in settings.get("zones") or ())
    request = _Request(subnet_id, bool(settings.get("public_control_plane")), zone_count(settings), pointer, zones)
    return _within(calls, vpc, request)


@dataclass(frozen=True, slots=True)
class _Request:
    """Request for one subnet of a VPC, or for any; in how many zones; faults are of ``pointer``."""

    subnet_id: str
    wants_public: bool
    zones: int
    pointer: str
    names: frozenset[str] = frozenset()
    """Of the zones that it must be; none: any."""


def vpc_of(calls: Calls, vpc_id: str, pointer: str = _VPC) -> Mapping[str, Any] | Finding:
    """The VPC as EC2 describes it, or what is wrong with it."""
    vpcs = calls.described_items("describe_vpcs", "Vpcs", VpcIds=[vpc_id])
    if not vpcs:
        return Finding(_VPC, f"There is no VPC {vpc_id} in {calls.region}.")
    for cidr, users in ((POD_CIDR, "pods"), (SERVICE_CIDR, "services")):
        for own in ranges(vpcs[0]):
            if IPv4Network(own).overlaps(IPv4Network(cidr)):
                return Finding(
                    pointer, f"{vpc_id} has the range {own}, which overlaps {cidr} of the {users}. Choose another VPC."
                )
    return vpcs[0]


def _within(calls: Calls, vpc: Mapping[str, Any], request: _Request) -> TenantNetwork | Finding:
    vpc_id, cidrs = str(vpc["VpcId"]), ranges(vpc)
    subnet_id, wants_public, pointer = request.subnet_id, request.wants_public, request.pointer
    subnets = [s for s in of_vpc(calls, vpc_id) if not request.names or s.zone in request.names]
    if subnet_id:
        subnet_of_id = next((subnet for subnet in subnets if subnet.id == subnet_id), None)
        fault = unfit(subnet_of_id, wants_public) if subnet_of_id else "is not shown by its VPC. Try again"
        if fault:
            return Finding(_SUBNET, f"Subnet {subnet_id} {fault}.")
    whose: dict[str, Any] = {"owner": owner_of(vpc), "shows_routes": all(s.routes.visible for s in subnets)}
    fit = [s for s in subnets if not unfit(s, wants_public) and subnet_id in ("", s.id)]
    if not fit:
        kind = "public" if wants_public else "private"
        return Finding(
            pointer,
            f"{vpc_id} has no {kind} subnet with a way out and {FREE_ADDRESSES} free addresses. Add one, or choose"
            " another VPC.",
        )
    if not any(subnet.routes.public for subnet in subnets):
        spread = _one_a_zone(fit)[: request.zones]
        ids = tuple(subnet.id for subnet in spread)
        return TenantNetwork(vpc_id, cidrs, ids[0], ids, public=False, places=_subnet_zones(spread), **whose)
    zones: dict[str, str] = {}
    for subnet in subnets:
        if subnet.routes.public and subnet.free >= BALANCER_ADDRESSES:
            zones.setdefault(subnet.zone, subnet.id)
    covered = [subnet for subnet in fit if subnet.zone in zones]
    if not covered:
        zone_names = ", ".join(sorted({subnet.zone for subnet in fit}))
        return Finding(
            pointer,
            f"{vpc_id} has no public subnet with {BALANCER_ADDRESSES} free addresses in {zone_names}, so the API's load"
            " balancer would not reach the control plane. Add one, or choose a subnet in the zone of one.",
        )
    first = covered[0]
    other_subnets = [zones[zone] for zone in sorted(zones) if zone != first.zone]
    balanced = (zones[first.zone], *other_subnets)[: request.zones]
    reached = [subnet for subnet in _one_a_zone(covered) if zones[subnet.zone] in balanced]
    return TenantNetwork(vpc_id, cidrs, first.id, balanced, public=True, places=_subnet_zones(reached), **whose)


def owner_of(vpc: Mapping[str, Any]) -> str:
    """The account that a VPC is of, as EC2 describes it; empty where it does not say."""
    return str(vpc.get("OwnerId") or "")


def _one_a_zone(subnets: Sequence[Subnet]) -> list[Subnet]:
    """The first subnet of each zone, in the order of the subnets."""
    firsts: dict[str, Subnet] = {}
    for subnet in subnets:
        firsts.setdefault(subnet.zone, subnet)
    return list(firsts.values())


def _subnet_zones(subnets: Sequence[Subnet]) -> tuple[tuple[str, str], ...]:
    return tuple((subnet.id, subnet.zone) for subnet in subnets)


def ranges(vpc: Mapping[str, Any]) -> tuple[str, ...]:
    """All IPv4 ranges of a VPC, the first one first: a load balancer may stand in any of them."""
    states = ("associated", "associating")
    more = (
        str(item["CidrBlock"])
        for item in vpc.get("CidrBlockAssociationSet", ())
        if item.get("CidrBlockState", {}).get("State", "associated") in states
    )
    return tuple(dict.fromkeys((str(vpc["CidrBlock"]), *more)))


def unfit(subnet: Subnet, wants_public: bool) -> str | None:
    """Reason why a control plane cannot stand there, and what to do; None when it can."""
    if not subnet.routes.egress:
        return "has no route to the internet. Add a default route, or choose another subnet"
    if subnet.routes.public and not wants_public:
        return (
            "is public, and a machine without a public address has no way out of it. Choose a private subnet, or set"
            " public_control_plane"
        )
    if wants_public and not subnet.routes.public:
        return "is private. Choose a public subnet, or leave public_control_plane out"
    if subnet.free < FREE_ADDRESSES:
        return (
            f"has only {subnet.free} free addresses of the {FREE_ADDRESSES} needed. Free some, or choose another subnet"
        )
    return None
