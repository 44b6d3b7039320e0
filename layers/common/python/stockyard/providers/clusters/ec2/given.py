"""A tenant's own VPC and subnet: which one is used, the same each time, and whether it can be used at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stockyard.errors import VendorNotFound
from stockyard.ports import Finding
from stockyard.providers.clusters.ec2.calls import Calls

FREE_ADDRESSES = 16
"""Fewer than this and the subnet is full for our purpose."""
_VPC, _SUBNET = "/settings/vpc_id", "/settings/subnet_id"


@dataclass(frozen=True, slots=True)
class Given:
    """The network that is used. ``balanced`` are the subnets for the load balancer; public ones if there are any."""

    vpc_id: str
    cidr: str
    subnet_id: str
    balanced: tuple[str, ...]
    public: bool


@dataclass(frozen=True, slots=True)
class _Routes:
    """Where a subnet's default route leads: ``public`` to an internet gateway, ``egress`` anywhere that works."""

    public: bool
    egress: bool


def choose(calls: Calls, settings: Mapping[str, Any]) -> Given | Finding:
    """The network of ``vpc_id`` and ``subnet_id``, at least one of which is set, or what is wrong with it."""
    vpc_id, subnet_id = str(settings.get("vpc_id") or ""), str(settings.get("subnet_id") or "")
    wants_public = bool(settings.get("public_control_plane"))
    if subnet_id:
        try:
            subnets = calls.call("ec2", "describe_subnets", SubnetIds=[subnet_id])["Subnets"]
        except VendorNotFound:
            subnets = []
        if not subnets:
            return Finding(_SUBNET, f"There is no subnet {subnet_id} in {calls.region}.")
        owner = str(subnets[0]["VpcId"])
        if vpc_id and vpc_id != owner:
            return Finding(_SUBNET, f"Subnet {subnet_id} belongs to {owner}, not to {vpc_id}.")
        vpc_id = owner
    try:
        vpcs = calls.call("ec2", "describe_vpcs", VpcIds=[vpc_id])["Vpcs"]
    except VendorNotFound:
        vpcs = []
    if not vpcs:
        return Finding(_VPC, f"There is no VPC {vpc_id} in {calls.region}.")
    return _within(calls, vpcs[0], subnet_id, wants_public)


def _within(calls: Calls, vpc: Mapping[str, Any], subnet_id: str, wants_public: bool) -> Given | Finding:
    here = [{"Name": "vpc-id", "Values": [vpc["VpcId"]]}]
    subnets = sorted(calls.pages("ec2", "describe_subnets", "Subnets", Filters=here), key=lambda s: str(s["SubnetId"]))
    tables = list(calls.pages("ec2", "describe_route_tables", "RouteTables", Filters=here))
    routes = {str(subnet["SubnetId"]): _routes(subnet["SubnetId"], tables) for subnet in subnets}
    if not subnet_id:
        fit = [
            str(subnet["SubnetId"])
            for subnet in subnets
            if subnet["AvailableIpAddressCount"] >= FREE_ADDRESSES
            and routes[subnet["SubnetId"]].egress
            and routes[subnet["SubnetId"]].public == wants_public
        ]
        if not fit:
            place = "public" if wants_public else "private"
            return Finding(_VPC, f"{vpc['VpcId']} has no {place} subnet with a way out and free addresses.")
        subnet_id = fit[0]
    zones: dict[str, str] = {}
    for subnet in subnets:
        if routes[subnet["SubnetId"]].public:
            zones.setdefault(str(subnet["AvailabilityZone"]), str(subnet["SubnetId"]))
    balanced = tuple(zones[zone] for zone in sorted(zones)) or (subnet_id,)
    return Given(str(vpc["VpcId"]), str(vpc["CidrBlock"]), subnet_id, balanced, bool(zones))


def _routes(subnet_id: str, tables: list[dict[str, Any]]) -> _Routes:
    pairs = [(table, item) for table in tables for item in table.get("Associations", ())]
    own = [table for table, item in pairs if item.get("SubnetId") == subnet_id]
    main = [table for table, item in pairs if item.get("Main")]
    chosen: dict[str, Any] = (own or main or [{}])[0]
    for route in chosen.get("Routes", ()):
        if route.get("DestinationCidrBlock") != "0.0.0.0/0" or route.get("State", "active") != "active":
            continue
        public = str(route.get("GatewayId") or "").startswith("igw-")
        others = ("NatGatewayId", "TransitGatewayId", "NetworkInterfaceId", "InstanceId", "VpcPeeringConnectionId")
        return _Routes(public, public or any(route.get(name) for name in others))
    return _Routes(public=False, egress=False)
