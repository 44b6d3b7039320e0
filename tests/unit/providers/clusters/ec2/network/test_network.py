"""The network of a cluster's own VPC: over chosen zones, with a gateway for all or one in each, and as it grows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.errors import VendorRefused
from stockyard.providers.clusters.ec2.network import network, zones
from stockyard.providers.clusters.ec2.network.layout import laid_out

ZONES = [f"us-east-1{letter}" for letter in "abcdef"]


def ways_out(yard: Any) -> dict[str, str]:
    """Name of each subnet -> where its default route leads."""
    ec2 = yard.tenant().client("ec2")
    vpc = [{"Name": "vpc-id", "Values": [yard.ledger.find("vpc", "main").vendor_id]}]
    names = {line.vendor_id: line.key for line in yard.ledger.lines() if line.kind == "subnet"}
    out = {}
    for table in ec2.describe_route_tables(Filters=vpc)["RouteTables"]:
        target = next(
            (r.get("NatGatewayId") or r["GatewayId"] for r in table["Routes"]
             if r.get("DestinationCidrBlock") == "0.0.0.0/0"), "",
        )  # fmt: skip
        for association in table["Associations"]:
            # Moto keeps the associations of subnets that are gone.
            if association.get("SubnetId") in names:
                assert association["SubnetId"] not in out, "a subnet has one table"
                out[names[association["SubnetId"]]] = target
    return out


def of_gateways(yard: Any) -> dict[str, str]:
    """NAT gateway -> the name of the subnet that it is in."""
    names = {line.vendor_id: line.key for line in yard.ledger.lines() if line.kind == "subnet"}
    living = yard.tenant().client("ec2").describe_nat_gateways()["NatGateways"]
    return {g["NatGatewayId"]: names[g["SubnetId"]] for g in living if g["State"] != "deleted"}


@pytest.mark.parametrize("count", [1, 3, 6])
def test_each_zone_has_a_gateway_of_its_own(yard: Any, count: int) -> None:
    zone_names = ZONES[::-1][:count]
    yard.with_settings(zones=zone_names, nat_gateways="per_zone").ensure("network")
    public_subnets = of_gateways(yard)
    assert sorted(public_subnets.values()) == [f"public-{letter}" for letter in "abcdef"[:count]]
    out = ways_out(yard)
    for letter in "abcdef"[:count]:
        assert public_subnets[out[f"private-{letter}"]] == f"public-{letter}"
        assert out[f"public-{letter}"].startswith("igw-")
    described = yard.tenant().client("ec2").describe_subnets(
        SubnetIds=[yard.ledger.find("subnet", key).vendor_id for key in out]
    )["Subnets"]  # fmt: skip
    by_id = {item["SubnetId"]: item for item in described}
    for key, cidr in laid_out("10.0.0.0/16", [count]).items():
        item = by_id[yard.ledger.find("subnet", key).vendor_id]
        assert (item["CidrBlock"], item["AvailabilityZone"]) == (cidr, zone_names["abcdef".index(key[-1])])


def test_all_zones_share_one_gateway_where_that_is_wanted(yard: Any) -> None:
    yard.with_settings(zones=ZONES[:3], nat_gateways="one").ensure("network")
    assert list(of_gateways(yard).values()) == ["public-a"]
    private = [target for name, target in ways_out(yard).items() if name.startswith("private")]
    assert len(private) == 3
    assert set(private) == set(of_gateways(yard))


@pytest.mark.parametrize(("size", "count"), [(None, 2), (1, 2), (3, 3), (5, 3)])
def test_a_control_plane_of_several_members_has_three_zones(yard: Any, size: int | None, count: int) -> None:
    yard.with_settings(control_plane_size=size)
    calls = yard.provider._builder(yard.work("network")).calls
    assert zones.cluster_zones(calls, yard.cluster) == ZONES[:count]
    assert zones.cluster_zones(calls, yard.cluster, ["us-east-1c"])[0] == "us-east-1c"


@pytest.mark.parametrize("gateways", ["one", "per_zone"])
def test_a_network_grows_by_zones(yard: Any, gateways: str) -> None:
    yard.with_settings(nat_gateways=gateways).create()
    before = {line.key: line.vendor_id for line in yard.ledger.lines() if line.kind == "subnet"}
    yard.with_settings(zones=[*ZONES[:2], "us-east-1d", "us-east-1e"])
    for phase in ("network", "security", "endpoint"):
        yard.ensure(phase)
    after = {line.key: line.vendor_id for line in yard.ledger.lines() if line.kind == "subnet"}
    assert before.items() <= after.items()
    ec2 = yard.tenant().client("ec2")
    ranges = {key: ec2.describe_subnets(SubnetIds=[x])["Subnets"][0]["CidrBlock"] for key, x in after.items()}
    assert ranges == laid_out("10.0.0.0/16", [2, 4])
    assert len(of_gateways(yard)) == (1 if gateways == "one" else 4)
    assert set(ways_out(yard)) == set(ranges)
    (balancer,) = yard.tenant().client("elbv2").describe_load_balancers()["LoadBalancers"]
    assert {zone_entry["SubnetId"] for zone_entry in balancer["AvailabilityZones"]} == {
        after[f"public-{letter}"] for letter in "abcd"
    }
    lines = yard.ledger.writes
    for phase in ("network", "security", "endpoint"):
        yard.ensure(phase)
    assert yard.ledger.writes == lines, "run twice, the second run changes nothing"
    builder = yard.provider._builder(yard.work("endpoint"))
    assert [zone for _, zone in network.of(builder).places] == [*ZONES[:2], "us-east-1d", "us-east-1e"]
    yard.later(120)
    yard.delete()
    assert yard.living() == []


def test_a_control_plane_that_grows_has_a_third_zone(yard: Any) -> None:
    yard.with_settings(control_plane_size=1).ensure("network")
    yard.with_settings(control_plane_size=3).ensure("network")
    net = network.of(yard.provider._builder(yard.work("network")))
    assert [zone for _, zone in net.places] == ZONES[:3]
    assert len(net.balanced) == 3


def as_of_an_earlier_release(yard: Any) -> None:
    """Lines say less: a subnet's no more than its zone."""
    for name, line in yard.ledger.all.items():
        if line.state != "gone":
            detail = {key: value for key, value in line.detail.items() if key not in ("zones", "subnets", "rules")}
            yard.ledger.all[name] = replace(line, detail=detail)


def test_a_cluster_of_an_earlier_release_keeps_its_network_and_grows(yard: Any) -> None:
    facts = yard.create()
    as_of_an_earlier_release(yard)
    living = sorted(yard.living())
    for phase in ("network", "security", "endpoint", "bastion"):
        yard.ensure(phase)
    assert sorted(yard.living()) == living
    net = network.of(yard.provider._builder(yard.work("security")))
    assert [zone for _, zone in net.places] == ZONES[:2]
    assert facts["endpoint"] == yard.ensure("endpoint").facts["endpoint"]
    as_of_an_earlier_release(yard)
    yard.with_settings(zones=ZONES)
    for phase in ("network", "security", "endpoint"):
        yard.ensure(phase)
    ec2 = yard.tenant().client("ec2")
    lines = {line.key: line.vendor_id for line in yard.ledger.lines() if line.kind == "subnet"}
    ranges = {key: ec2.describe_subnets(SubnetIds=[x])["Subnets"][0]["CidrBlock"] for key, x in lines.items()}
    assert ranges == laid_out("10.0.0.0/16", [2, 6])


def test_gateways_come_and_go_with_the_setting(yard: Any) -> None:
    yard.with_settings(zones=ZONES[:3], nat_gateways="one").create()
    yard.with_settings(nat_gateways="per_zone")
    for phase in ("network", "security"):
        yard.ensure(phase)
    public_subnets = of_gateways(yard)
    out = ways_out(yard)
    assert {public_subnets[out[f"private-{letter}"]] for letter in "abc"} == {"public-a", "public-b", "public-c"}
    addresses = {item["PublicIp"] for item in yard.tenant().client("ec2").describe_addresses()["Addresses"]}
    assert {f"{address}/32" for address in addresses} <= ranges_of(yard, "balancer")
    yard.later(120)
    yard.with_settings(nat_gateways="one")
    for phase in ("network", "security"):
        yard.ensure(phase)
    assert list(of_gateways(yard).values()) == ["public-a"]
    assert len(yard.tenant().client("ec2").describe_addresses()["Addresses"]) == 1
    assert len(set(ways_out(yard).values())) == 2
    assert len(ranges_of(yard, "balancer") & {f"{address}/32" for address in addresses}) == 1
    yard.later(120)
    yard.delete()
    assert yard.living() == []


def ranges_of(yard: Any, key: str) -> set[str]:
    group = yard.ledger.find("security_group", key).vendor_id
    (described,) = yard.tenant().client("ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"]
    return {item["CidrIp"] for rule in described["IpPermissions"] for item in rule["IpRanges"]}


def test_a_vpc_that_is_full_does_not_grow(yard: Any) -> None:
    yard.with_settings(vpc_cidr="10.0.0.0/24").ensure("network")
    yard.with_settings(zones=ZONES)
    with pytest.raises(VendorRefused, match=r"10.0.0.0/24 has no room .* in each of 6 zones"):
        yard.ensure("network")


def test_zones_that_nobody_has_or_that_offer_no_type_are_found(yard: Any) -> None:
    yard.with_settings(zones=["us-east-1a", "us-east-1x"])
    (finding,) = [f for f in yard.provider.inspect(yard.work("account")) if "zones" in f.pointer]
    assert (finding.pointer, finding.warning) == ("/settings/zones/1", False)
    assert "us-east-1x" in finding.detail
