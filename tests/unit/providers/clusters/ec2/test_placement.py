"""Place of a cluster: in a network that is there already, and from where it can be reached."""

from __future__ import annotations

from typing import Any

import pytest


def existing_network(yard: Any) -> dict[str, str]:
    """A VPC with a subnet without a way out, a private and a public one, by name."""
    ec2 = yard.tenant().client("ec2")
    vpc = ec2.create_vpc(CidrBlock="172.20.0.0/16")["Vpc"]["VpcId"]
    network = {"vpc": vpc}
    for index, name in enumerate(("dark", "private", "public")):
        network[name] = ec2.create_subnet(VpcId=vpc, CidrBlock=f"172.20.{index}.0/24", AvailabilityZone="us-east-1a")[
            "Subnet"
        ]["SubnetId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=network["public"], AllocationId=address)["NatGateway"]["NatGatewayId"]
    for name, target in (("public", {"GatewayId": gateway}), ("private", {"NatGatewayId": nat})):
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", **target)
        ec2.associate_route_table(RouteTableId=table, SubnetId=network[name])
    return network


@pytest.mark.parametrize("settings", [("vpc_id",), ("subnet_id",), ("vpc_id", "subnet_id")])
def test_existing_network_is_used_and_left_unchanged(yard: Any, settings: tuple[str, ...]) -> None:
    network = existing_network(yard)
    before = sorted(yard.living())
    values = {"vpc_id": network["vpc"], "subnet_id": network["private"]}
    yard.with_settings(**{name: values[name] for name in settings})
    assert list(yard.provider.inspect(yard.work("account"))) == []
    facts = yard.create()
    session = yard.tenant()
    instance = session.client("ec2").describe_instances(InstanceIds=[facts["instance_id"]])["Reservations"][0]
    assert instance["Instances"][0]["SubnetId"] == network["private"]
    balancer = session.client("elbv2").describe_load_balancers()["LoadBalancers"][0]
    assert balancer["Scheme"] == "internet-facing"
    assert [zone["SubnetId"] for zone in balancer["AvailabilityZones"]] == [network["public"]]
    yard.later(120)
    yard.delete()
    assert sorted(yard.living()) == before


def test_public_control_plane_is_in_public_subnet(yard: Any) -> None:
    yard.with_settings(public_control_plane=True)
    facts = yard.create()
    answer = yard.tenant().client("ec2").describe_instances(InstanceIds=[facts["instance_id"]])
    assert answer["Reservations"][0]["Instances"][0]["SubnetId"] == yard.ledger.find("subnet", "public-a").vendor_id


@pytest.mark.parametrize(
    ("settings", "port", "cidrs"),
    [
        ({}, 22, set()),
        ({"ssh_cidrs": ["198.51.100.0/24"]}, 22, {"198.51.100.0/24"}),
        ({}, 6443, {"0.0.0.0/0"}),
        ({"api_cidrs": ["203.0.113.0/24"]}, 6443, {"203.0.113.0/24"}),
    ],
)
def test_only_configured_ranges_reach_endpoint_and_control_plane(
    yard: Any, settings: dict[str, Any], port: int, cidrs: set[str]
) -> None:
    yard.with_settings(**settings)
    yard.ensure("network")
    yard.ensure("security")
    ec2 = yard.tenant().client("ec2")
    nat = ec2.describe_addresses()["Addresses"][0]["PublicIp"]
    groups = {key: yard.ledger.find("security_group", key).vendor_id for key in ("balancer", "control-plane")}
    rules = {
        key: ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissions"]
        for key, group in groups.items()
    }

    def ranges(key: str) -> set[str]:
        return {r["CidrIp"] for rule in rules[key] if rule["FromPort"] == port for r in rule["IpRanges"]}

    if port == 22:
        assert (ranges("control-plane"), ranges("balancer")) == (cidrs, set())
        return
    assert ranges("balancer") == cidrs | {"10.0.0.0/16", f"{nat}/32"}
    assert ranges("control-plane") == {"10.0.0.0/16"}
    peers = [pair["GroupId"] for rule in rules["control-plane"] for pair in rule["UserIdGroupPairs"]]
    assert peers == [groups["balancer"]]


def test_load_balancer_has_its_group_from_the_start(yard: Any) -> None:
    yard.create()
    (balancer,) = yard.tenant().client("elbv2").describe_load_balancers()["LoadBalancers"]
    assert balancer["SecurityGroups"] == [yard.ledger.find("security_group", "balancer").vendor_id]


def test_cluster_whose_security_an_earlier_release_made_gets_its_endpoint(yard: Any) -> None:
    for phase in ("network", "security", "identity"):
        yard.ensure(phase)
    yard.ledger.gone(yard.ledger.find("security_group", "balancer"))
    assert yard.ensure("endpoint").facts["endpoint"]
    (balancer,) = yard.tenant().client("elbv2").describe_load_balancers()["LoadBalancers"]
    assert not balancer.get("SecurityGroups")


def test_inspection_finds_subnet_of_other_vpc_and_other_region(yard: Any) -> None:
    network = existing_network(yard)
    other_vpc = yard.tenant().client("ec2").create_vpc(CidrBlock="172.21.0.0/16")["Vpc"]["VpcId"]
    yard.with_settings(vpc_id=other_vpc, subnet_id=network["private"])
    assert [f.pointer for f in yard.provider.inspect(yard.work("account"))] == ["/settings/subnet_id"]
    west = yard.with_settings(vpc_id="", subnet_id="", region_name="us-west-2")
    west.tenant().client("ec2", region_name="us-west-2").create_key_pair(KeyName="my-key")
    findings = list(west.provider.inspect(west.work("account")))
    assert [(f.pointer, f.warning) for f in findings] == [("/settings/region_name", True)]
