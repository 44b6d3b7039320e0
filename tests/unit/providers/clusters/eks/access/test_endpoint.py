"""Reach of a cluster's API: who is let in, and when Stockyard is shut out."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.errors import InvalidInput, VendorUnavailable
from stockyard.providers.clusters.eks import names
from stockyard.providers.clusters.eks.access import endpoint
from stockyard.providers.clusters.eks.settings import EksSettings
from tests.harness.worlds.memory_kubernetes import MemoryKubernetes
from tests.unit.providers.clusters.eks.conftest import Run, change

STAGE = ("192.0.2.7", "192.0.2.8")
PEERED = ["10.20.0.0/16", "172.16.1.0/24"]


def access(eks: Any) -> dict[str, Any]:
    described = eks.tenant().client("eks").describe_cluster(name=names.cluster_name(eks.cluster))["cluster"]
    return dict(described["resourcesVpcConfig"])


def ranges(eks: Any) -> set[str]:
    """Ranges that reach the API through the cluster's own security group, beside the machines."""
    group = eks.ledger.find("security_group", "cluster").vendor_id
    (item,) = eks.tenant().client("ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"]
    rules = [rule for rule in item["IpPermissions"] if rule["IpRanges"]]
    assert all((rule["FromPort"], rule["ToPort"]) == (443, 443) for rule in rules)
    return {entry["CidrIp"] for rule in rules for entry in rule["IpRanges"]}


def test_a_private_endpoint_is_reached_from_private_ranges_alone(eks: Any, run: Run) -> None:
    change(eks, endpoint="private", private_access_cidrs=PEERED)
    run("control_plane")
    assert (access(eks)["endpointPublicAccess"], access(eks)["endpointPrivateAccess"]) == (False, True)
    assert ranges(eks) == set(PEERED)
    change(eks, private_access_cidrs=PEERED[:1], public_access_cidrs=["192.0.2.0/24"])
    eks.ensure("control_plane")
    assert access(eks)["endpointPublicAccess"]
    assert access(eks)["publicAccessCidrs"] == ["192.0.2.0/24"]
    assert ranges(eks) == set(PEERED[:1])
    change(eks, endpoint="private")
    eks.ensure("control_plane")
    assert not access(eks)["endpointPublicAccess"]
    assert ranges(eks) == set()


def test_a_stage_without_a_network_installs_nothing_behind_a_private_endpoint(eks: Any) -> None:
    change(eks, endpoint="private")
    (refused,) = endpoint.findings(eks.cluster, ())
    assert (refused.pointer, refused.warning) == ("/settings/endpoint", False)
    assert "egress_addresses" in refused.detail
    (warned,) = endpoint.findings(eks.cluster, STAGE)
    assert warned.warning
    assert "a route to this VPC" in warned.detail


@pytest.mark.parametrize(
    ("cidrs", "addresses", "texts"),
    [
        ([], (), []),
        (["192.0.2.0/24"], STAGE, []),
        (["192.0.2.7/32", "198.51.100.0/24"], STAGE, ["installs the cluster's agent: 192.0.2.8"]),
        (["198.51.100.0/24"], (), ["come from addresses that change"]),
    ],
)
def test_public_ranges_have_the_addresses_of_the_stage(
    eks: Any, cidrs: list[str], addresses: tuple[str, ...], texts: list[str]
) -> None:
    change(eks, public_access_cidrs=cidrs)
    findings = list(endpoint.findings(eks.cluster, addresses))
    assert len(findings) == len(texts)
    for finding, text in zip(findings, texts, strict=True):
        assert text in finding.detail
        assert (finding.pointer, finding.warning) == ("/settings/public_access_cidrs", not addresses)


def test_a_private_api_that_does_not_answer_says_what_to_look_at(eks: Any, run: Run, api: MemoryKubernetes) -> None:
    change(eks, endpoint="private")
    run("storage")
    api.error = VendorUnavailable("no answer")
    with pytest.raises(VendorUnavailable) as raised:
        eks.provider.ensure("objects", eks.work("objects"))
    assert "needs a route to the VPC" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("settings", "pointer"),
    [
        ({"endpoint": "private", "public_access_cidrs": ["192.0.2.0/24"]}, "/public_access_cidrs"),
        ({"private_access_cidrs": ["10.1.0.0/16", "192.0.2.0/24"]}, "/private_access_cidrs/1"),
        ({"public_access_cidrs": ["10.1.0.0/16"]}, "/public_access_cidrs/0"),
    ],
)
def test_ranges_that_cannot_be_are_named(settings: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        read(EksSettings, {"region_name": "us-east-1", **settings})
    assert [problem.pointer for problem in raised.value.errors] == [pointer]
