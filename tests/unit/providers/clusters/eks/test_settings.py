"""Settings of a cluster on EKS, each refusal at its field and in a sentence, and the settings on the record."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.clusters import settings_for
from stockyard.domain.pools.node_groups import worker_groups
from stockyard.errors import InvalidInput
from stockyard.providers.clusters.eks import groups
from stockyard.providers.clusters.eks.settings import EksNodeGroup, builtin_group

GROUP = {"name": "gpu", "role": "gpu", "instance_type": "g6.xlarge", "accelerator_type": "l4", "zones": ["us-west-2a"]}


def settings(**named: Any) -> dict[str, Any]:
    return settings_for("aws", "k8s", "eks", "demo", {"region_name": "us-west-2", **named})


def faults(**named: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        settings(**named)
    return {problem.pointer.removeprefix("/settings"): problem.detail for problem in caught.value.errors}


def group(**named: Any) -> dict[str, Any]:
    return {"node_groups": [{**GROUP, **named}]}


def test_every_default_is_filled_in() -> None:
    assert settings() == {
        "mirror": True,
        "region_name": "us-west-2",
        "vpc_cidr": "10.0.0.0/16",
        "subnet_cidrs": ["10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/20"],
        "zones": [],
        "nat_gateways": "one",
        "public_access_cidrs": [],
        "endpoint": "public",
        "private_access_cidrs": [],
        "block_storage": False,
        "control_plane_logs": [],
        "deletion_protection": False,
        "support": "standard",
        "addon_versions": {},
        "shared_storage": True,
        "namespace": "",
        "node_groups": [builtin_group()],
    }


def test_a_group_called_system_is_there_instead_of_the_built_in_one() -> None:
    own = {"name": "system", "role": "system", "instance_type": "m6i.large", "count": 2}
    (only,) = settings(node_groups=[own])["node_groups"]
    assert (only["instance_type"], only["count"], only["max_size"], only["disk_gib"]) == ("m6i.large", 2, 8, 100)
    assert "builtin" not in only
    first, last = settings(**group())["node_groups"]
    assert (first["name"], last["name"], last["builtin"]) == ("gpu", "system", True)
    # one that was read, and sent with another size, is the caller's own: a manifest has it
    (larger,) = settings(node_groups=[{**builtin_group(), "count": 2}])["node_groups"]
    assert ("builtin" in larger, larger["count"]) == (False, 2)


def test_settings_that_were_read_can_be_sent_again() -> None:
    once = settings(**group(), zones=["us-west-2a", "us-west-2b"])
    assert settings_for("aws", "k8s", "eks", "demo", once) == once


def test_the_built_in_group_has_the_fields_of_every_group() -> None:
    document = read(EksNodeGroup, builtin_group()).model_dump(mode="json")
    assert document == builtin_group()


def test_every_group_is_a_pool_that_says_all_of_it() -> None:
    for each in worker_groups(settings(**group(max_size=5, count=0))):
        pool = groups.pool_of_group(each)
        assert groups.group_of_pool(pool) == each


@pytest.mark.parametrize(
    ("named", "subnets"),
    [
        ({"vpc_cidr": "10.8.0.0/16"}, ["10.8.0.0/20", "10.8.16.0/20", "10.8.32.0/20"]),
        ({"zones": ["us-west-2c", "us-west-2a"]}, ["10.0.0.0/20", "10.0.16.0/20"]),
        ({"vpc_cidr": "192.168.4.0/24", "zones": ["us-west-2a", "us-west-2b"]}, ["192.168.4.0/28", "192.168.4.16/28"]),
    ],
)
def test_subnets_that_nobody_names_are_computed(named: dict[str, Any], subnets: list[str]) -> None:
    assert settings(**named)["subnet_cidrs"] == subnets


TWO = ["10.0.0.0/20", "10.0.16.0/20"]
NETWORK_FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"vpc_cidr": "10.0.0.0/15"}, "/vpc_cidr", "must be between /16 and /28"),
    ({"vpc_cidr": "203.0.113.0/24"}, "/vpc_cidr", "must be private: within 10.0.0.0/8"),
    ({"vpc_cidr": "10.0.0.1/16"}, "/vpc_cidr", "must be written as the range itself"),
    ({"vpc_cidr": "10.0.0.0/27"}, "/vpc_cidr", "has no room for all subnets"),
    ({"subnet_cidrs": TWO[:1]}, "/subnet_cidrs", "must have at least 2 entries"),
    ({"subnet_cidrs": [f"10.0.{i}.0/24" for i in range(7)]}, "/subnet_cidrs", "must have at most 6 entries"),
    ({"subnet_cidrs": [TWO[0], TWO[0]]}, "/subnet_cidrs/1", "overlaps 10.0.0.0/20"),
    ({"subnet_cidrs": [TWO[0], "10.0.8.0/21"]}, "/subnet_cidrs/1", "overlaps 10.0.0.0/20"),
    ({"subnet_cidrs": [TWO[0], "10.1.0.0/20"]}, "/subnet_cidrs/1", "must lie in the VPC, which is 10.0.0.0/16"),
    ({"subnet_cidrs": [TWO[0], "10.0.16.0/29"]}, "/subnet_cidrs/1", "must be between /16 and /28"),
    ({"subnet_cidrs": ["10.0.0.0/17", "10.0.128.0/18"]}, "/subnet_cidrs", "leave no room for the private subnets"),
    ({"zones": ["us-west-2a"]}, "/zones", "must name 2 to 6 zones"),
    ({"zones": ["us-west-2a", "us-west-2b"], "subnet_cidrs": [*TWO, "10.0.32.0/20"]}, "/zones", "as many zones"),
    ({"zones": ["us-west-2a", "us-west-2a"]}, "/zones/1", "is listed twice"),
    ({"zones": ["us-west-2a", "us-east-1a"]}, "/zones/1", "must be a zone of region us-west-2"),
    ({"nat_gateways": "two"}, "/nat_gateways", ""),
    ({"public_access_cidrs": ["all"]}, "/public_access_cidrs/0", "must be an IPv4 range"),
    ({"public_access_cidrs": ["192.0.2.0/24", "10.1.0.0/16"]}, "/public_access_cidrs/1", "must be public"),
    ({"addon_versions": {"vpc-cni": "latest"}}, "/addon_versions/vpc-cni", "a version of an add-on"),
    ({"key_pair": "mine"}, "/key_pair", "is a field of clusters on AWS"),
]
GROUP_FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"name": ""}, "/name", "must have at least 1 character"),
    ({"name": "x" * 41}, "/name", "must have at most 40 characters"),
    ({"role": "worker"}, "/role", ""),
    ({"instance_type": "large"}, "/instance_type", "an EC2 instance type"),
    ({"disk_gib": 9}, "/disk_gib", "at least 10"),
    ({"disk_gib": 65_537}, "/disk_gib", "at most 65536"),
    ({"count": -1}, "/count", "at least 0"),
    ({"max_size": 1001}, "/max_size", "at most 1000"),
    ({"min_size": 2}, "/min_size", "must not be greater than count"),
    ({"count": 9}, "/max_size", "must not be less than count"),
    ({"zones": []}, "/zones", "is required when role is gpu"),
    ({"zones": ["us-west-2a", "us-west-2a"]}, "/zones/1", "is listed twice"),
    ({"zones": ["eu-west-1a"]}, "/zones/0", "must be a zone of region us-west-2"),
    ({"accelerator_type": ""}, "/accelerator_type", "is required when role is gpu"),
    ({"fabric": "infiniband"}, "/fabric", ""),
    ({"capacity_reservation_id": "cr-xyz"}, "/capacity_reservation_id", "the id of a capacity reservation"),
    (
        {"capacity_reservation_id": "cr-0a", "zones": ["us-west-2a", "us-west-2b"]},
        "/zones",
        "must be one zone, that of the capacity reservation",
    ),
    ({"builtin": True}, "/builtin", "is said of the group system alone"),
    ({"labels": {"node-role.kubernetes.io/gpu": "1"}}, "/labels/node-role.kubernetes.io~1gpu", "must not be of"),
    ({"taints": [{"key": "a", "effect": "Never"}]}, "/taints/0/effect", ""),
    ({"taints": [{"key": "a", "effect": "NoExecute"}] * 2}, "/taints/1", "same key and effect as another"),
]


def test_a_gateway_in_each_zone_goes_by_the_word_of_ec2_too():
    assert [settings(nat_gateways=word)["nat_gateways"] for word in ("one", "zone", "per_zone")] == [
        "one",
        "zone",
        "zone",
    ]


@pytest.mark.parametrize(("named", "pointer", "words"), NETWORK_FAULTS)
def test_refused_settings(named: dict[str, Any], pointer: str, words: str) -> None:
    faults_by_pointer = faults(**named)
    assert list(faults_by_pointer) == [pointer]
    assert words in faults_by_pointer[pointer]


@pytest.mark.parametrize(("named", "pointer", "words"), GROUP_FAULTS)
def test_refused_groups(named: dict[str, Any], pointer: str, words: str) -> None:
    faults_by_pointer = faults(**group(**named))
    assert list(faults_by_pointer) == ["/node_groups/0" + pointer]
    assert words in faults_by_pointer["/node_groups/0" + pointer]


def test_two_groups_of_one_name_are_refused() -> None:
    assert faults(node_groups=[GROUP, GROUP]) == {"/node_groups/1/name": "another group has this name"}
    assert list(faults(node_groups=[{**GROUP, "name": f"g{number}"} for number in range(9)])) == ["/node_groups"]


def test_groups_are_in_the_zones_that_the_cluster_names() -> None:
    faults_by_pointer = faults(**group(zones=["us-west-2c"]), zones=["us-west-2a", "us-west-2b"])
    assert faults_by_pointer == {"/node_groups/0/zones/0": "must be one of the cluster's zones, us-west-2a, us-west-2b"}


def test_all_faults_are_told_at_once() -> None:
    faults_by_pointer = faults(zones=["us-east-1a", "us-west-2a"], subnet_cidrs=[TWO[0], TWO[0]])
    assert set(faults_by_pointer) == {"/zones/0", "/subnet_cidrs/1"}


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("stockyard.dev/claim", "is set by Stockyard"),
        ("modelplane.ai/pool", "is set by Stockyard"),
        ("karpenter.sh/nodepool", "is set by Stockyard"),
        ("kubernetes.io/hostname", "must not be of kubernetes.io/"),
        ("node-role.kubernetes.io/web", "must not be of kubernetes.io/"),
        ("node.kubernetes.io/pool", "must not be of kubernetes.io/"),
        ("eks.amazonaws.com/nodegroup", "must not be of kubernetes.io/"),
    ],
)
def test_labels_that_others_set_are_refused(label: str, words: str) -> None:
    refused = faults(**group(labels={label: "x", "example.com/team": "a"}))
    assert list(refused) == [f"/node_groups/0/labels/{label.replace('/', '~1')}"]
    assert words in next(iter(refused.values()))


def test_other_labels_are_taken() -> None:
    labels = {"nvidia.com/gpu.present": "true", "team": "a"}
    assert settings(**group(labels=labels))["node_groups"][0]["labels"] == labels
