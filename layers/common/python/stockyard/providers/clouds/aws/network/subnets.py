"""The subnets of a VPC, and where their traffic goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.providers.clouds.aws.calls import Calls


@dataclass(frozen=True, slots=True)
class Routes:
    """Target of a subnet's default route: ``public`` to an internet gateway, ``egress`` anywhere that works.
    ``visible``: whether we see it at all."""

    public: bool
    egress: bool
    visible: bool = True


@dataclass(frozen=True, slots=True)
class Subnet:
    """One subnet of the VPC, as far as it matters here. ``zone_id`` is the same in all accounts, ``zone`` is this one's
    name of it."""

    id: str
    zone: str
    free: int
    routes: Routes
    zone_id: str = ""


def of_vpc(calls: Calls, vpc_id: str) -> Sequence[Subnet]:
    """The VPC's subnets, in the same order each time."""
    here = [{"Name": "vpc-id", "Values": [vpc_id]}]
    tables = list(calls.pages("ec2", "describe_route_tables", "RouteTables", Filters=here))
    # Each VPC has a main table: where none is shown, the VPC is of another account, which keeps its routes to itself.
    subnets = [
        read(subnet, _routes(str(subnet["SubnetId"]), tables) if tables else _unseen(subnet))
        for subnet in calls.pages("ec2", "describe_subnets", "Subnets", Filters=here)
    ]
    return sorted(subnets, key=lambda subnet: subnet.id)


def read(described: Mapping[str, Any], routes: Routes | None = None) -> Subnet:
    """A subnet as EC2 describes it. ``routes`` are to be looked up apart."""
    return Subnet(
        str(described["SubnetId"]),
        str(described["AvailabilityZone"]),
        int(described.get("AvailableIpAddressCount", 0)),
        routes or Routes(public=False, egress=False),
        str(described.get("AvailabilityZoneId") or ""),
    )


def _unseen(described: Mapping[str, Any]) -> Routes:
    """Routes of a subnet that are not shown: the subnet is taken to have a way out, and to be public where its machines
    get public addresses."""
    return Routes(public=bool(described.get("MapPublicIpOnLaunch")), egress=True, visible=False)


def _routes(subnet_id: str, tables: list[dict[str, Any]]) -> Routes:
    pairs = [(table, item) for table in tables for item in table.get("Associations", ())]
    own = [table for table, item in pairs if item.get("SubnetId") == subnet_id]
    main = [table for table, item in pairs if item.get("Main")]
    table_in_force: dict[str, Any] = (own or main or [{}])[0]
    for route in table_in_force.get("Routes", ()):
        if route.get("DestinationCidrBlock") != "0.0.0.0/0" or route.get("State", "active") != "active":
            continue
        public = str(route.get("GatewayId") or "").startswith("igw-")
        # A private gateway or a firewall's endpoint is a GatewayId too.
        target_fields = (
            "GatewayId",
            "NatGatewayId",
            "TransitGatewayId",
            "CoreNetworkArn",
            "NetworkInterfaceId",
            "InstanceId",
            "VpcPeeringConnectionId",
        )
        return Routes(public, public or any(route.get(name) for name in target_fields))
    return Routes(public=False, egress=False)
