"""Ranges and types that a cluster on EC2 may name, and the network that follows from a range."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import pytest

from stockyard.domain.models.clusters.clusters import settings_for
from stockyard.errors import InvalidInput
from stockyard.providers.clusters.ec2.configuration import DEFAULT_TYPES, named_control_plane_types
from stockyard.providers.clusters.ec2.network.layout import laid_out

EARLIER_LAYOUT = {
    "public-a": "10.0.0.0/20",
    "public-b": "10.0.16.0/20",
    "private-a": "10.0.64.0/18",
    "private-b": "10.0.128.0/18",
}


def settings(**named: Any) -> dict[str, Any]:
    return settings_for("aws", "k8s", None, "demo", {"key_pair": "my-key", **named})


def fault(**named: Any) -> tuple[str, str]:
    with pytest.raises(InvalidInput) as caught:
        settings(**named)
    (problem,) = caught.value.errors
    return problem.pointer, problem.detail


def test_a_key_pair_is_needed_for_a_bastion_alone() -> None:
    assert settings_for("aws", "k8s", None, "demo", {})["key_pair"] is None
    assert settings(key_pair=None, bastion={"enabled": False})["key_pair"] is None
    assert fault(key_pair=None, bastion={}) == (
        "/settings/key_pair",
        "is needed by the bastion: without a key pair nobody could log in to it",
    )


@pytest.mark.parametrize("cidr", ["10.0.0.0/16", "10.20.0.0/24", "172.31.4.0/22", "192.168.0.0/16"])
def test_layout_fits_each_range_that_is_taken(cidr: str) -> None:
    assert settings(vpc_cidr=cidr)["vpc_cidr"] == cidr
    subnets = [IPv4Network(text) for text in laid_out(cidr, [2]).values()]
    assert all(subnet.subnet_of(IPv4Network(cidr)) and subnet.prefixlen <= 28 for subnet in subnets)
    assert not any(a.overlaps(b) for a in subnets for b in subnets if a != b)


def test_default_range_has_the_layout_of_earlier_clusters() -> None:
    assert laid_out(settings()["vpc_cidr"], [2]) == EARLIER_LAYOUT


@pytest.mark.parametrize(
    ("cidr", "words"),
    [
        ("10.0.0.0/15", "between /16 and /24"),
        ("10.0.0.0/25", "between /16 and /24"),
        ("203.0.113.0/24", "must be private"),
        ("100.64.0.0/16", "must be private"),
        ("10.244.0.0/16", "10.244.0.0/16, which the pods"),
        ("10.244.7.0/24", "10.244.0.0/16, which the pods"),
        ("10.100.0.0/16", "10.96.0.0/12, which the services"),
        ("10.0.0.1/16", "must be written as the range itself"),
        ("10.0.0.0", "must be written as the range itself"),
        ("fd00::/16", "must be an IPv4 range"),
    ],
)
def test_ranges_that_do_not_fit_are_refused_by_name(cidr: str, words: str) -> None:
    pointer, detail = fault(vpc_cidr=cidr)
    assert pointer == "/settings/vpc_cidr"
    assert words in detail


@pytest.mark.parametrize("network", [{"vpc_id": "vpc-01234567"}, {"subnet_id": "subnet-01234567"}])
def test_a_given_network_has_its_own_range(network: dict[str, str]) -> None:
    assert fault(vpc_cidr="10.0.0.0/16", **network)[0] == "/settings/vpc_cidr"
    assert settings(**network)["vpc_cidr"] is None


def test_types_are_tried_in_the_order_in_which_they_are_named() -> None:
    assert settings()["control_plane_instance_types"] == list(DEFAULT_TYPES)
    assert settings(control_plane_instance_type="m5.large")["control_plane_instance_types"] == ["m5.large"]
    several = settings(control_plane_instance_types=["m5.large", "m6i.large"])
    assert (several["control_plane_instance_type"], len(several["control_plane_instance_types"])) == ("m5.large", 2)
    group = {"name": "cp", "role": "control", "min_size": 1, "max_size": 1, "instance_types": ["c5.large", "c6i.large"]}
    grouped = settings(control_plane_instance_type="m5.large", autoscaler_node_groups=[group])
    assert grouped["control_plane_instance_types"] == ["c5.large", "c6i.large"]
    types = {"control_plane_instance_type": "m5.large", "control_plane_instance_types": ["c5.large"]}
    assert fault(**types) == ("/settings/control_plane_instance_types", "must begin with control_plane_instance_type")


def test_faults_of_types_point_to_where_somebody_has_written_them() -> None:
    assert named_control_plane_types(settings()) == []
    named = named_control_plane_types(settings(control_plane_instance_types=["m5.large", "q1.none"]))
    assert named[1] == ("/settings/control_plane_instance_types/1", "q1.none")
    single = named_control_plane_types(settings(control_plane_instance_type="q1.none"))
    assert single == [("/settings/control_plane_instance_type", "q1.none")]
    assert named_control_plane_types({"key_pair": "my-key"}) == [], "a record of the first release"


def faults(**named: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        settings(**named)
    return {problem.pointer: problem.detail for problem in caught.value.errors}


def subnets(*zones: str, public: bool = True) -> list[dict[str, str]]:
    numbered = [(zone, 2 * number) for number, zone in enumerate(zones)]
    entries = [{"zone": zone, "private": f"subnet-{number:08x}"} for zone, number in numbered]
    if public:
        entries = [{**entry, "public": f"subnet-{2 * n + 1:08x}"} for n, entry in enumerate(entries)]
    return entries


def control(*zones: str) -> dict[str, Any]:
    """The control group, in those zones."""
    group = {"name": "cp", "role": "control", "min_size": 1, "max_size": 1, "instance_types": ["t3.large"]}
    return {**group, "zones": list(zones)}


VPC, SSH = {"vpc_id": "vpc-01234567"}, {"ssh_cidrs": ["192.0.2.0/24"]}


def test_who_names_zones_has_a_gateway_in_each() -> None:
    zones = ["us-east-1a", "us-east-1c"]
    assert (settings()["zones"], settings()["nat_gateways"]) == ([], "one")
    assert (settings(zones=zones)["zones"], settings(zones=zones)["nat_gateways"]) == (zones, "per_zone")
    assert settings(zones=zones, nat_gateways="one")["nat_gateways"] == "one"
    assert settings(nat_gateways="zone")["nat_gateways"] == "per_zone"
    assert settings(**VPC)["nat_gateways"] is None


@pytest.mark.parametrize(
    ("named", "pointer", "words"),
    [
        ({"zones": ["us-east-1a", "us-east-1a"]}, "/settings/zones/1", ""),
        ({"zones": ["us-east-1a", "eu-west-1a"]}, "/settings/zones/1", "must be a zone of region us-east-1"),
        ({"zones": [f"us-east-1{x}" for x in "abcdefg"]}, "/settings/zones", "6"),
        ({"nat_gateways": "two"}, "/settings/nat_gateways", ""),
        ({"subnet_id": "subnet-01234567", "zones": ["us-east-1a"]}, "/settings/zones", "is in one zone"),
        ({**VPC, "zones": ["us-east-1a"], "subnets": subnets("us-east-1b")}, "/settings/zones", "the zones of subnets"),
        ({**VPC, "nat_gateways": "one"}, "/settings/nat_gateways", "its own ways out"),
        ({"subnets": subnets("us-east-1a")}, "/settings/subnets", "needs vpc_id"),
        (
            {**VPC, "subnet_id": "subnet-01234567", "subnets": subnets("us-east-1a")},
            "/settings/subnet_id",
            "cannot be given beside subnets",
        ),
        ({**VPC, "subnets": subnets("us-east-1a", "us-east-1a")}, "/settings/subnets/1/zone", "another entry"),
        ({**VPC, "subnets": subnets("us-east-1a", "eu-west-1a")}, "/settings/subnets/1/zone", "of region us-east-1"),
        (
            {**VPC, "subnets": [*subnets("us-east-1a"), *subnets("us-east-1b", "us-east-1c", public=False)[1:]]},
            "/settings/subnets/1/public",
            "for each zone or for none",
        ),
        (
            {**VPC, "subnets": [{"zone": "us-east-1a", "private": "subnet-01234567", "public": "subnet-01234567"}]},
            "/settings/subnets/0/public",
            "named twice",
        ),
        ({"bastion": {"protocol": "RDP"}, **SSH}, "/settings/bastion/protocol", "RDP (port 3389) is for Windows"),
        ({"bastion": {"protocol": "telnet"}, **SSH}, "/settings/bastion/protocol", "must be ssh"),
        ({"bastion": {"size": 2}, **SSH}, "/settings/bastion/size", ""),
        (
            {"zones": ["us-east-1a"], "autoscaler_node_groups": [control("us-east-1a", "us-east-1b")]},
            "/settings/autoscaler_node_groups/0/zones/1",
            "none of the cluster's zones",
        ),
    ],
)  # fmt: skip
def test_contradictions_are_named(named: dict[str, Any], pointer: str, words: str) -> None:
    problems = faults(**named)
    assert set(problems) == {pointer}
    assert words in problems[pointer]


def test_a_control_group_may_stand_in_some_of_the_zones() -> None:
    zones = ["us-east-1a", "us-east-1b"]
    (group,) = settings(zones=zones, autoscaler_node_groups=[control("us-east-1b")])["autoscaler_node_groups"]
    assert group["zones"] == ["us-east-1b"]
    placed = settings(**VPC, subnets=subnets(*zones), autoscaler_node_groups=[control("us-east-1b")])
    assert placed["autoscaler_node_groups"][0]["zones"] == ["us-east-1b"]


def test_a_bastion_is_filled_up_and_may_be_off() -> None:
    on = settings(bastion={}, ssh_cidrs=["192.0.2.0/24"])["bastion"]
    assert on == {"enabled": True, "instance_type": "t3.micro", "image": None, "protocol": "ssh"}
    assert settings(bastion={"enabled": False})["bastion"]["enabled"] is False
    assert settings(**VPC, subnets=subnets("us-east-1b", "us-east-1a"))["subnets"][1]["zone"] == "us-east-1a"
