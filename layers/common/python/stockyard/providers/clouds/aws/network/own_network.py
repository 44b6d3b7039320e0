"""Parts of each network of our own, whichever driver lays it out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from stockyard.errors import NotYetVisible, PermissionDenied, VendorQuotaExceeded
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.errors import accepting
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.resources.cluster_building import ClusterBuilder
from stockyard.providers.clouds.aws.resources.making import DesiredResource, PresentResource

AnyBuilder = ClusterBuilder[Any]


def vpc(builder: AnyBuilder, name: str, cidr: str) -> str:
    """The VPC, which gives its machines names."""
    create = builder.creation("create_vpc", "vpc", "Vpc", "VpcId", CidrBlock=cidr)
    return builder.want(DesiredResource(ec2_kinds.VPC, "main", name, create, partial(_give_names, builder))).vendor_id


def internet_gateway(builder: AnyBuilder, name: str, vpc_id: str) -> str:
    """The VPC's way to the internet."""
    path = ("InternetGateway", "InternetGatewayId")
    create = builder.creation("create_internet_gateway", "internet-gateway", *path)

    def attach(gateway_id: str) -> None:
        _attach(builder, gateway_id, vpc_id)

    return builder.want(DesiredResource(ec2_kinds.INTERNET_GATEWAY, "main", name, create, attach)).vendor_id


def nat_gateway(
    builder: AnyBuilder, name: str, subnet_id: str, key: str = "main", address_key: str = "nat"
) -> PresentResource:
    """A gateway in a public subnet, with an address of its own, by which private subnets get out."""
    create = builder.creation("allocate_address", "elastic-ip", "AllocationId", Domain="vpc")
    address = builder.want(DesiredResource(ec2_kinds.ADDRESS, address_key, name, create)).vendor_id
    placed = {"SubnetId": subnet_id, "AllocationId": address}
    path = ("NatGateway", "NatGatewayId")
    create = builder.creation("create_nat_gateway", "natgateway", *path, by_token=True, **placed)
    return builder.want(DesiredResource(ec2_kinds.NAT_GATEWAY, key, name, create))


def route_table(
    builder: AnyBuilder, key: str, name: str, vpc_id: str, subnets: Sequence[str], target: dict[str, str]
) -> str:
    """A table whose default route leads to ``target``, for these subnets. One that had another table has this one
    then. The table's id."""
    path = ("RouteTable", "RouteTableId")
    create = builder.creation("create_route_table", "route-table", *path, by_token=True, VpcId=vpc_id)

    def configure(table: str) -> None:
        tables = builder.calls.call("ec2", "describe_route_tables", RouteTableIds=[table])["RouteTables"]
        if not tables:
            raise NotYetVisible(f"route table {table} is not shown yet")
        if not any(route.get("DestinationCidrBlock") == "0.0.0.0/0" for route in tables[0]["Routes"]):
            builder.calls.call("ec2", "create_route", RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", **target)
        associated = {item.get("SubnetId") for item in tables[0].get("Associations", ())}
        if _have_others(builder, key, subnets):
            _free(builder, table, subnets)
        for subnet in subnets:
            if subnet not in associated:
                builder.calls.call("ec2", "associate_route_table", RouteTableId=table, SubnetId=subnet)

    desired = DesiredResource(ec2_kinds.ROUTE_TABLE, key, name, create, configure, detail={"subnets": list(subnets)})
    table = builder.want(desired).vendor_id
    line = builder.ledger.find(ec2_kinds.ROUTE_TABLE.name, key)
    if line is not None and list(line.detail.get("subnets") or ()) != list(subnets):
        # The network has grown, or has other gateways than before.
        configure(table)
        builder.ledger.made(line, table, {**line.detail, "subnets": list(subnets)})
    return table


def s3_endpoint(builder: AnyBuilder, name: str, vpc_id: str, tables: Sequence[str]) -> str:
    """A gateway by which traffic with S3 goes from the subnets of these route tables: image layers of ECR are there. It
    is free, where a NAT gateway takes money for each byte. Why there is none, for an account that does not take it, as
    the end of a sentence; else empty: a network is as good without."""
    service = f"com.amazonaws.{builder.calls.region}.s3"
    path = ("VpcEndpoint", "VpcEndpointId")
    create = builder.creation(
        "create_vpc_endpoint",
        "vpc-endpoint",
        *path,
        by_token=True,
        VpcId=vpc_id,
        ServiceName=service,
        VpcEndpointType="Gateway",
    )

    def configure(endpoint: str) -> None:
        _route_by(builder, endpoint, tables)

    desired = DesiredResource(ec2_kinds.VPC_ENDPOINT, "s3", name, create, configure, detail={"tables": list(tables)})
    try:
        endpoint = builder.want(desired).vendor_id
        line = builder.ledger.find(ec2_kinds.VPC_ENDPOINT.name, "s3")
        if line is not None and list(line.detail.get("tables") or ()) != list(tables):
            # The network has other zones or gateways than before.
            configure(endpoint)
            builder.ledger.made(line, endpoint, {**line.detail, "tables": list(tables)})
    except (PermissionDenied, VendorQuotaExceeded) as error:
        return f", without an endpoint of S3: {error.detail}"
    return ""


def _route_by(builder: AnyBuilder, endpoint: str, tables: Sequence[str]) -> None:
    """Let these route tables lead to the endpoint, and no others."""
    described = builder.calls.call("ec2", "describe_vpc_endpoints", VpcEndpointIds=[endpoint])["VpcEndpoints"]
    if not described:
        raise NotYetVisible(f"endpoint {endpoint} is not shown yet")
    present = set(described[0].get("RouteTableIds") or ())
    change = {
        "AddRouteTableIds": [table for table in tables if table not in present],
        "RemoveRouteTableIds": sorted(present - set(tables)),
    }
    change = {parameter: ids for parameter, ids in change.items() if ids}
    if change:
        builder.calls.call("ec2", "modify_vpc_endpoint", VpcEndpointId=endpoint, **change)


def _have_others(builder: AnyBuilder, key: str, subnets: Sequence[str]) -> bool:
    """Whether another of our tables may have one of these subnets, as the ledger knows."""
    other_subnets = (
        line.detail.get("subnets")
        for line in builder.ledger.lines()
        if line.kind == ec2_kinds.ROUTE_TABLE.name and line.key != key
    )
    return any(its_subnets is None or not set(subnets).isdisjoint(its_subnets) for its_subnets in other_subnets)


def _free(builder: AnyBuilder, table: str, subnets: Sequence[str]) -> None:
    """Take these subnets from other tables than this one: a subnet has one at a time."""
    its_subnets = [{"Name": "association.subnet-id", "Values": list(subnets)}]
    for other in builder.calls.pages("ec2", "describe_route_tables", "RouteTables", Filters=its_subnets):
        for item in other.get("Associations", ()):
            if other["RouteTableId"] != table and item.get("SubnetId") in subnets:
                association = item["RouteTableAssociationId"]
                builder.calls.call("ec2", "disassociate_route_table", AssociationId=association)


def available_zones(calls: Calls) -> list[dict[str, Any]]:
    """The region's zones proper, by name, as EC2 describes them."""
    answer = calls.call("ec2", "describe_availability_zones", Filters=[{"Name": "state", "Values": ["available"]}])
    proper = [
        zone for zone in answer["AvailabilityZones"] if zone.get("ZoneType", "availability-zone") == "availability-zone"
    ]
    return sorted(proper, key=lambda zone: str(zone["ZoneName"]))


def _give_names(builder: AnyBuilder, vpc_id: str) -> None:
    # AWS takes one attribute a call; host names need support first.
    for attribute in ("EnableDnsSupport", "EnableDnsHostnames"):
        builder.calls.call("ec2", "modify_vpc_attribute", VpcId=vpc_id, **{attribute: {"Value": True}})


def _attach(builder: AnyBuilder, gateway: str, vpc_id: str) -> None:
    answer = builder.calls.call("ec2", "describe_internet_gateways", InternetGatewayIds=[gateway])
    attached = [
        item["VpcId"] for description in answer["InternetGateways"] for item in description.get("Attachments", ())
    ]
    if vpc_id in attached:
        return
    with accepting("Resource.AlreadyAssociated"):
        builder.calls.call("ec2", "attach_internet_gateway", InternetGatewayId=gateway, VpcId=vpc_id)
