"""The network phase: our own VPC over two zones, or the tenant's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from ipaddress import IPv4Network
from typing import Any

from stockyard.domain.records import Resource
from stockyard.errors import VendorRefused
from stockyard.ports import Finding, Outcome
from stockyard.providers.clouds.aws import ec2_kinds, own_network, tags
from stockyard.providers.clouds.aws.kinds import GIVEN_NETWORK
from stockyard.providers.clusters.ec2 import tenant_network
from stockyard.providers.clusters.ec2.building import Builder, Wish
from stockyard.providers.clusters.ec2.configuration import control_plane_types, vpc_cidr

ZONES = 2


@dataclass(frozen=True, slots=True)
class Network(tenant_network.TenantNetwork):
    """What later phases need to know; ``nat`` is our gateway's address."""

    nat: str = ""


def layout(cidr: str) -> dict[str, str]:
    """The subnets of our own VPC by name: a sixteenth of it each for what is public, a quarter each for machines. As
    much is free, for a third zone."""
    sixteenths, quarters = (list(IPv4Network(cidr).subnets(bits)) for bits in (4, 2))
    return {
        "public-a": str(sixteenths[0]),
        "public-b": str(sixteenths[1]),
        "private-a": str(quarters[1]),
        "private-b": str(quarters[2]),
    }


def is_given(settings: Mapping[str, Any]) -> bool:
    """Whether the tenant names a VPC or a subnet."""
    return bool(settings.get("vpc_id") or settings.get("subnet_id"))


def ensure(builder: Builder) -> Outcome:
    """Make the network, or choose the given one. Not done while the NAT gateway comes up."""
    if is_given(builder.work.cluster.settings):
        network = _tenant_network(builder)
        return Outcome(True, f"{network.vpc_id} and {network.subnet_id} are used as they are")
    cidr = vpc_cidr(builder.work.cluster)
    vpc = own_network.vpc(builder, builder.name("vpc"), cidr)
    gateway = own_network.internet_gateway(builder, builder.name("igw"), vpc)
    subnets = _subnets(builder, vpc)
    _route_table(builder, "public", vpc, [subnets["public-a"], subnets["public-b"]], {"GatewayId": gateway})
    nat = own_network.nat_gateway(builder, builder.name("nat"), subnets["public-a"])
    if nat.pending:
        return Outcome(False, f"NAT gateway {nat.vendor_id} is coming up")
    _route_table(builder, "private", vpc, [subnets["private-a"], subnets["private-b"]], {"NatGatewayId": nat.vendor_id})
    return Outcome(True, f"{vpc} with four subnets")


def of(builder: Builder) -> Network:
    """The network as the ledger knows it. Raises ``VendorRefused`` when the network phase has not run."""
    ledger = builder.work.ledger
    choice = ledger.find(GIVEN_NETWORK.name, "main")
    if choice is not None:
        return _network_of_line(choice)

    def vendor_id(kind: str, key: str) -> str:
        line = ledger.find(kind, key)
        if line is None or line.state != "made":
            raise VendorRefused(f"{kind} {key} is not on the ledger", hint="Resume from the network phase.")
        return line.vendor_id

    cluster = builder.work.cluster
    kind = "public" if cluster.settings.get("public_control_plane") else "private"
    keys = (f"{kind}-a", f"{kind}-b")
    zones_by_key = {line.key: str(line.detail["zone"]) for line in ledger.lines() if line.kind == "subnet"}
    places = tuple((vendor_id("subnet", key), zones_by_key[key]) for key in keys)
    answer = builder.calls.call("ec2", "describe_addresses", AllocationIds=[vendor_id("address", "nat")])
    nat = str(answer["Addresses"][0].get("PublicIp", "")) if answer["Addresses"] else ""
    balanced = (vendor_id("subnet", "public-a"), vendor_id("subnet", "public-b"))
    cidrs = (vpc_cidr(cluster),)
    return Network(vendor_id("vpc", "main"), cidrs, places[0][0], balanced, public=True, places=places, nat=nat)


def gateway_addresses(builder: Builder, net: Network) -> tuple[str, ...]:
    """The public addresses from which nodes come to the API: of our NAT gateway, or of those of a given VPC."""
    if net.nat or not net.public:
        return (net.nat,) if net.nat else ()
    working = [{"Name": "vpc-id", "Values": [net.vpc_id]}, {"Name": "state", "Values": ["pending", "available"]}]
    gateways = builder.calls.pages("ec2", "describe_nat_gateways", "NatGateways", Filters=working)
    addresses = (entry.get("PublicIp") for gateway in gateways for entry in gateway.get("NatGatewayAddresses", ()))
    return tuple(sorted(str(address) for address in addresses if address))


def _tenant_network(builder: Builder) -> Network:
    ledger = builder.work.ledger
    line = ledger.find(GIVEN_NETWORK.name, "main")
    if line is None or line.state != "made":
        choice = tenant_network.choose(builder.calls, builder.work.cluster.settings)
        if isinstance(choice, Finding):
            raise VendorRefused(choice.detail, hint=f"Correct {choice.pointer} and create the cluster again.")
        line = ledger.made(ledger.intend(GIVEN_NETWORK.name, "main", asdict(choice)), choice.subnet_id)
    return _network_of_line(line)


def _network_of_line(line: Resource) -> Network:
    """The choice as the ledger keeps it, with lists where it had tuples."""
    detail = line.detail
    # A line of an earlier release has no places: its one subnet was the only one.
    places = tuple((str(subnet), str(zone)) for subnet, zone in detail.get("places") or [(detail["subnet_id"], "")])
    cidrs, balanced = tuple(detail["cidrs"]), tuple(detail["balanced"])
    return Network(detail["vpc_id"], cidrs, detail["subnet_id"], balanced, detail["public"], places)


def zones(builder: Builder) -> list[str]:
    """Two zones of the region, the same ones each time: those that offer more of the control plane's types first."""
    types = control_plane_types(builder.work.cluster)
    offers = builder.calls.pages(
        "ec2",
        "describe_instance_type_offerings",
        "InstanceTypeOfferings",
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": list(types)}],
    )
    offering = Counter(str(offer["Location"]) for offer in offers)
    here = [str(zone["ZoneName"]) for zone in own_network.available_zones(builder)]
    if not any(offering[zone] for zone in here):
        names = " or ".join(types)
        raise VendorRefused(
            f"no zone of {builder.calls.region} offers {names}", hint="Choose another instance type or region."
        )
    # The control plane stands in the first if it can; the second need not offer a type.
    ordered = sorted(here, key=lambda zone: (-offering[zone], zone))
    if len(ordered) < ZONES:
        raise VendorRefused(f"{builder.calls.region} has fewer than {ZONES} zones", hint="Choose another region.")
    return ordered[:ZONES]


def _subnets(builder: Builder, vpc: str) -> dict[str, str]:
    subnet_ids: dict[str, str] = {}
    zone_names: list[str] = []
    for key, cidr in layout(vpc_cidr(builder.work.cluster)).items():
        line = builder.work.ledger.find("subnet", key)
        if line is None and not zone_names:
            zone_names = zones(builder)
        zone = str(line.detail["zone"]) if line else zone_names["ab".index(key[-1])]
        role = "elb" if key.startswith("public") else "internal-elb"
        extra = {f"kubernetes.io/role/{role}": "1", tags.kubernetes(builder.work.cluster.client_id): "owned"}
        where: dict[str, Any] = {"VpcId": vpc, "CidrBlock": cidr, "AvailabilityZone": zone}
        create = builder.creation("create_subnet", "subnet", "Subnet", "SubnetId", **where)
        wish = Wish(ec2_kinds.SUBNET, key, builder.name(key), create, detail={"zone": zone}, extra_tags=extra)
        subnet_ids[key] = builder.want(wish).vendor_id
    return subnet_ids


def _route_table(builder: Builder, key: str, vpc: str, subnets: list[str], target: dict[str, str]) -> None:
    own_network.route_table(builder, key, builder.name(f"{key}-routes"), vpc, subnets, target)
