"""Changes of a network when a ready cluster gets and leaves zones, other gateways, or subnets that are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from stockyard.ports import Finding
from stockyard.providers.clusters.ec2.network import network
from stockyard.providers.clusters.ec2.network.layout import laid_out
from tests.unit.providers.clusters.ec2.network.test_network import ZONES, of_gateways, ways_out
from tests.unit.providers.clusters.ec2.network.test_tenant_network import Vpc

CHANGE = ("network", "security", "endpoint", "bastion")


def change(yard: Any, **settings: Any) -> None:
    """As the operation does it: each phase until it is done."""
    yard.later(120)
    yard.with_settings(**settings)
    for phase in CHANGE:
        yard.ensure(phase)


def faults(yard: Any) -> Sequence[Finding]:
    """Findings that refuse a change of a ready cluster."""
    yard.cluster = replace(yard.cluster, status="ready")
    return [finding for finding in yard.provider.inspect(yard.work("account")) if not finding.warning]


def subnets(yard: Any) -> dict[str, str]:
    """Zone of each subnet that there is, by name."""
    listed = [line for line in yard.ledger.lines() if line.kind == "subnet"]
    ids = {line.vendor_id: line.key for line in listed}
    described = yard.tenant().client("ec2").describe_subnets(SubnetIds=list(ids))["Subnets"]
    return {ids[item["SubnetId"]]: item["AvailabilityZone"] for item in described}


def balanced_zones(yard: Any) -> set[str]:
    (balancer,) = yard.tenant().client("elbv2").describe_load_balancers()["LoadBalancers"]
    return {zone_entry["ZoneName"] for zone_entry in balancer["AvailabilityZones"]}


@pytest.mark.parametrize("gateways", ["one", "per_zone"])
def test_a_zone_in_the_middle_leaves_and_comes_back_with_its_letters(yard: Any, gateways: str) -> None:
    yard.with_settings(zones=ZONES[:3], nat_gateways=gateways).create()
    before = subnets(yard)
    change(yard, zones=[ZONES[0], ZONES[2]])
    assert subnets(yard) == {key: zone for key, zone in before.items() if zone != ZONES[1]}
    assert balanced_zones(yard) == {ZONES[0], ZONES[2]}
    assert set(of_gateways(yard).values()) == ({"public-a", "public-c"} if gateways == "per_zone" else {"public-a"})
    assert set(ways_out(yard)) == set(subnets(yard))
    net = network.of(yard.provider._builder(yard.work("endpoint")))
    assert [zone for _, zone in net.places] == [ZONES[0], ZONES[2]]
    writes = yard.ledger.writes
    for phase in CHANGE:
        yard.ensure(phase)
    assert yard.ledger.writes == writes, "run twice, the second run changes nothing"
    change(yard, zones=ZONES[:3])
    assert subnets(yard) == before
    yard.later(120)
    yard.delete()
    assert yard.living() == []


def test_a_zone_comes_while_another_leaves(yard: Any) -> None:
    yard.with_settings(zones=ZONES[:3], nat_gateways="per_zone").create()
    change(yard, zones=[*ZONES[:2], "us-east-1d"])
    assert subnets(yard) == {
        f"{tier}-{letter}": f"us-east-1{letter}" for tier in ("public", "private") for letter in "abd"
    }
    ec2 = yard.tenant().client("ec2")
    lines = {line.key: line.vendor_id for line in yard.ledger.lines() if line.kind == "subnet"}
    ranges = {key: ec2.describe_subnets(SubnetIds=[x])["Subnets"][0]["CidrBlock"] for key, x in lines.items()}
    ranges_of_letters = laid_out("10.0.0.0/16", [3, 4])
    assert ranges == {key: ranges_of_letters[key] for key in ranges}
    yard.later(120)
    yard.delete()
    assert yard.living() == []


def test_a_zone_with_a_machine_in_it_is_not_torn_down(yard: Any) -> None:
    yard.with_settings(zones=ZONES[:3], nat_gateways="per_zone").create()
    subnet = yard.ledger.find("subnet", "private-c").vendor_id
    ec2 = yard.tenant().client("ec2")
    ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1, SubnetId=subnet)
    yard.later(120)
    yard.with_settings(zones=ZONES[:2])
    yard.ensure("network")
    assert yard.provider.leaving_zones(yard.work("checks")) == {"us-east-1c": "/settings/zones"}


def test_the_first_zone_stays(yard: Any) -> None:
    yard.with_settings(zones=ZONES[:3]).create()
    yard.with_settings(zones=ZONES[1:3])
    (fault,) = faults(yard)
    assert fault.pointer == "/settings/zones"
    assert "us-east-1a is the first zone of the network, and stays" in fault.detail


def test_a_network_without_room_is_refused_before_anything_is_done(yard: Any) -> None:
    yard.with_settings(vpc_cidr="10.0.0.0/24", zones=ZONES[:2]).create()
    yard.with_settings(zones=ZONES)
    (fault,) = faults(yard)
    assert (fault.pointer, "has no room" in fault.detail) == ("/settings/zones", True)


def test_which_zones_leave_is_known_without_the_cloud(yard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.with_settings(zones=ZONES[:3]).create()
    yard.with_settings(zones=ZONES[:2])
    monkeypatch.setattr(yard.provider, "_sessions", None)
    assert yard.provider.leaving_zones(yard.work("checks")) == {"us-east-1c": "/settings/zones"}


def test_zones_that_nobody_has_named_stay_when_all_are_named(yard: Any) -> None:
    yard.create()
    yard.with_settings(zones=ZONES[2:4])
    assert yard.provider.leaving_zones(yard.work("checks")) == dict.fromkeys(ZONES[:2], "/settings/zones")
    yard.with_settings(zones=ZONES[:3])
    assert yard.provider.leaving_zones(yard.work("checks")) == {}


def entries_of(yard: Any, vpc: Vpc, *letters: str) -> list[dict[str, str]]:
    return [
        {"zone": f"us-east-1{x}", "private": vpc.subnet("private", x), "public": vpc.subnet("public", x)}
        for x in letters
    ]


def test_a_given_network_grows_by_naming_subnets(yard: Any) -> None:
    vpc = Vpc(yard)
    entries = entries_of(yard, vpc, "a", "b", "c")
    yard.with_settings(vpc_id=vpc.id, subnets=entries[:2]).create()
    change(yard, subnets=entries)
    net = network.of(yard.provider._builder(yard.work("endpoint")))
    assert [subnet for subnet, _ in net.places] == [entry["private"] for entry in entries]
    assert balanced_zones(yard) == set(ZONES[:3])
    yard.with_settings(subnets=[entries[0], entries[2]])
    assert yard.provider.leaving_zones(yard.work("checks")) == {"us-east-1b": "/settings/subnets"}
    change(yard, subnets=[entries[0], entries[2]])
    assert balanced_zones(yard) == {ZONES[0], ZONES[2]}
    other = {**entries[2], "private": vpc.subnet("private", "c")}
    yard.with_settings(subnets=[entries[0], other])
    (fault,) = faults(yard)
    assert (fault.pointer, entries[2]["private"] in fault.detail) == ("/settings/subnets/1/private", True)


@pytest.mark.parametrize(("count", "state"), [(3, "ENABLED"), (0, "DISABLED")])
def test_daily_snapshots_follow_the_setting(yard: Any, count: int, state: str) -> None:
    yard.with_settings(etcd_snapshots=7).create()
    dlm, ec2 = yard.tenant().client("dlm"), yard.tenant().client("ec2")
    count_before = len(ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"])
    assert count_before
    yard.with_settings(etcd_snapshots=count)
    assert yard.ensure("snapshots") is not None
    (listed,) = dlm.get_lifecycle_policies()["Policies"]
    policy = dlm.get_lifecycle_policy(PolicyId=listed["PolicyId"])["Policy"]
    retained = policy["PolicyDetails"]["Schedules"][0]["RetainRule"]["Count"]
    assert (policy["State"], retained) == (state, count or 7)
    assert len(ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]) == count_before
    yard.with_settings(etcd_snapshots=5)
    yard.ensure("snapshots")
    policy = dlm.get_lifecycle_policy(PolicyId=listed["PolicyId"])["Policy"]
    assert (policy["State"], policy["PolicyDetails"]["Schedules"][0]["RetainRule"]["Count"]) == ("ENABLED", 5)
    yard.later(120)
    yard.delete()
    assert yard.living() == []


def test_snapshots_come_where_there_were_none(yard: Any) -> None:
    yard.with_settings(etcd_snapshots=0).create()
    yard.ensure("snapshots")
    assert yard.tenant().client("dlm").get_lifecycle_policies()["Policies"] == []
    yard.with_settings(etcd_snapshots=2)
    yard.ensure("snapshots")
    assert len(yard.tenant().client("dlm").get_lifecycle_policies()["Policies"]) == 1
