"""Subnets of an existing network that are used, and networks that are refused before anything is created."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.ports import Finding
from stockyard.providers.clusters.ec2.network.tenant_network import TenantNetwork, choose

OWNER = "222222222222"


class Vpc:
    """A VPC with an internet gateway; a test adds subnets, and the first private one adds a NAT gateway."""

    def __init__(self, yard: Any, cidr: str = "172.20.0.0/16") -> None:
        self.yard = yard
        self.ec2 = yard.tenant().client("ec2")
        self.prefix = cidr.rsplit(".", 2)[0]
        self.id = self.ec2.create_vpc(CidrBlock=cidr)["Vpc"]["VpcId"]
        self.gateway = self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        self.ec2.attach_internet_gateway(InternetGatewayId=self.gateway, VpcId=self.id)
        self.count = 0
        self.nat = ""

    def subnet(self, reach: str, zone: str, size: int = 24) -> str:
        answer = self.ec2.create_subnet(
            VpcId=self.id, CidrBlock=f"{self.prefix}.{self.count}.0/{size}", AvailabilityZone=f"us-east-1{zone}"
        )
        self.count += 1
        name = str(answer["Subnet"]["SubnetId"])
        if reach != "dark":
            table = self.ec2.create_route_table(VpcId=self.id)["RouteTable"]["RouteTableId"]
            target = {"GatewayId": self.gateway} if reach == "public" else {"NatGatewayId": self._nat(name)}
            self.ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", **target)
            self.ec2.associate_route_table(RouteTableId=table, SubnetId=name)
        return name

    def _nat(self, subnet: str) -> str:
        if not self.nat:
            address = self.ec2.allocate_address(Domain="vpc")["AllocationId"]
            nat_gateway = self.ec2.create_nat_gateway(SubnetId=subnet, AllocationId=address)["NatGateway"]
            self.nat = str(nat_gateway["NatGatewayId"])
        return self.nat

    def fill(self, subnet: str, remaining: int) -> None:
        free = self.ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["AvailableIpAddressCount"]
        for _ in range(free - remaining):
            self.ec2.create_network_interface(SubnetId=subnet)

    def choose(self, **settings: Any) -> TenantNetwork | Finding:
        calls = self.yard.provider._builder(self.yard.work("network")).calls
        return choose(calls, settings)


@pytest.fixture
def vpc(yard: Any) -> Vpc:
    return Vpc(yard)


def test_private_subnet_is_in_zone_of_load_balancer(vpc: Vpc) -> None:
    for zone in "abcd":
        vpc.subnet("private", zone)
    covered = vpc.subnet("private", "f")
    public = vpc.subnet("public", "f")
    choice = vpc.choose(vpc_id=vpc.id)
    subnet_zones = ((covered, "us-east-1f"),)
    assert choice == TenantNetwork(
        vpc.id, ("172.20.0.0/16",), covered, (public,), public=True, places=subnet_zones, owner=OWNER
    )
    assert vpc.choose(vpc_id=vpc.id) == choice


def test_load_balancer_covers_zone_of_machine_and_one_more(vpc: Vpc) -> None:
    public = {zone: vpc.subnet("public", zone) for zone in "abc"}
    private = vpc.subnet("private", "c")
    choice = vpc.choose(vpc_id=vpc.id)
    assert isinstance(choice, TenantNetwork)
    assert (choice.subnet_id, choice.balanced) == (private, (public["c"], public["a"]))


def test_named_zones_and_members_of_a_control_plane_decide_how_many_zones_are_used(vpc: Vpc) -> None:
    public = {zone: vpc.subnet("public", zone) for zone in "abcd"}
    private = {zone: vpc.subnet("private", zone) for zone in "abcd"}
    choice = vpc.choose(vpc_id=vpc.id, zones=["us-east-1d", "us-east-1b"])
    assert isinstance(choice, TenantNetwork)
    assert set(choice.machine_subnets) == {private["b"], private["d"]}
    assert set(choice.balanced) == {public["b"], public["d"]}
    three = vpc.choose(vpc_id=vpc.id, control_plane_size=3)
    assert isinstance(three, TenantNetwork)
    assert (len(three.places), len(three.balanced)) == (3, 3)
    assert isinstance(vpc.choose(vpc_id=vpc.id, zones=["us-east-1f"]), Finding)


def test_subnet_outside_zones_of_load_balancer_is_refused(vpc: Vpc) -> None:
    vpc.subnet("public", "a")
    private = vpc.subnet("private", "b")
    choice = vpc.choose(subnet_id=private)
    assert isinstance(choice, Finding)
    assert (choice.pointer, choice.warning) == ("/settings/subnet_id", False)
    assert "us-east-1b" in choice.detail
    anywhere = vpc.choose(vpc_id=vpc.id)
    assert isinstance(anywhere, Finding)
    assert anywhere.pointer == "/settings/vpc_id"


def test_full_public_subnet_is_not_used_for_load_balancer(vpc: Vpc) -> None:
    full, private = vpc.subnet("public", "a", size=28), vpc.subnet("private", "a")
    vpc.fill(full, 7)
    refused = vpc.choose(vpc_id=vpc.id)
    assert isinstance(refused, Finding)
    assert "free addresses" in refused.detail
    room = vpc.subnet("public", "a")
    choice = vpc.choose(vpc_id=vpc.id)
    assert isinstance(choice, TenantNetwork)
    assert (choice.subnet_id, choice.balanced) == (private, (room,))


def test_vpc_without_public_subnet_has_internal_endpoint(vpc: Vpc, yard: Any) -> None:
    private = vpc.subnet("private", "b")
    choice = vpc.choose(subnet_id=private)
    subnet_zones = ((private, "us-east-1b"),)
    assert choice == TenantNetwork(
        vpc.id, ("172.20.0.0/16",), private, (private,), public=False, places=subnet_zones, owner=OWNER
    )
    yard.with_settings(subnet_id=private)
    warned = [(f.pointer, f.warning) for f in yard.provider.inspect(yard.work("account"))]
    assert warned == [("/settings/subnet_id", True)]


@pytest.mark.parametrize(
    ("reach", "settings", "says"),
    [
        ("public", {}, "is public"),
        ("private", {"public_control_plane": True}, "is private"),
        ("dark", {}, "no route to the internet"),
        ("dark", {"public_control_plane": True}, "no route to the internet"),
        ("full", {}, "free addresses"),
    ],
)
@pytest.mark.parametrize("both", [False, True])
def test_subnet_unfit_for_control_plane_is_refused(
    vpc: Vpc, reach: str, settings: dict[str, Any], says: str, both: bool
) -> None:
    vpc.subnet("public", "a")
    vpc.subnet("private", "a")
    subnet = vpc.subnet("private", "a", size=28) if reach == "full" else vpc.subnet(reach, "a")
    choice = vpc.choose(subnet_id=subnet, **settings, **({"vpc_id": vpc.id} if both else {}))
    assert isinstance(choice, Finding)
    assert (choice.pointer, choice.warning) == ("/settings/subnet_id", False)
    assert subnet in choice.detail
    assert says in choice.detail


@pytest.mark.parametrize("cidr", ["10.244.0.0/16", "10.244.128.0/20", "10.96.0.0/16", "10.111.0.0/16"])
def test_vpc_overlapping_pods_or_services_is_refused(yard: Any, cidr: str) -> None:
    vpc = Vpc(yard, cidr)
    refused = vpc.choose(vpc_id=vpc.id)
    assert isinstance(refused, Finding)
    assert refused.pointer == "/settings/vpc_id"
    assert cidr in refused.detail


def test_secondary_ranges_of_vpc_count(vpc: Vpc, yard: Any) -> None:
    vpc.subnet("public", "a")
    vpc.subnet("private", "a")
    vpc.ec2.associate_vpc_cidr_block(VpcId=vpc.id, CidrBlock="172.21.0.0/16")
    yard.with_settings(vpc_id=vpc.id, api_cidrs=["203.0.113.0/24"])
    yard.ensure("network")
    yard.ensure("security")
    group = yard.ledger.find("security_group", "balancer").vendor_id
    rules = vpc.ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissions"]
    ranges = {r["CidrIp"] for rule in rules for r in rule["IpRanges"]}
    (gateway,) = vpc.ec2.describe_nat_gateways(NatGatewayIds=[vpc.nat])["NatGateways"]
    own = f"{gateway['NatGatewayAddresses'][0]['PublicIp']}/32"
    assert ranges == {"203.0.113.0/24", "172.20.0.0/16", "172.21.0.0/16", own}, "nodes come in through their gateway"
    vpc.ec2.associate_vpc_cidr_block(VpcId=vpc.id, CidrBlock="10.244.0.0/20")
    assert isinstance(vpc.choose(vpc_id=vpc.id), Finding)


def test_private_gateway_is_a_route_to_the_internet(vpc: Vpc) -> None:
    subnet = vpc.subnet("dark", "a")
    gateway = vpc.ec2.create_vpn_gateway(Type="ipsec.1")["VpnGateway"]["VpnGatewayId"]
    table = vpc.ec2.create_route_table(VpcId=vpc.id)["RouteTable"]["RouteTableId"]
    vpc.ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    vpc.ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
    choice = vpc.choose(subnet_id=subnet)
    assert isinstance(choice, TenantNetwork)
    assert not choice.public
