"""Ranges and types that a cluster on EC2 may name, and the network that follows from a range."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import pytest

from stockyard.domain.models.clusters import settings_for
from stockyard.errors import InvalidInput
from stockyard.providers.clusters.ec2.configuration import DEFAULT_TYPES, named_control_plane_types
from stockyard.providers.clusters.ec2.layout import laid_out

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
