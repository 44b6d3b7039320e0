"""Machines of EC2 reach the clusters of their own account and region; simulated ones reach all."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.reach import out_of_reach
from stockyard.domain.records import Cluster, NodeProvider

MOMENT = "2026-01-31T12:00:00.000Z"


def provider(kind: str = "ec2", **block: Any) -> NodeProvider:
    return NodeProvider("npr_1", "aws", kind, {kind: block}, MOMENT, MOMENT)


def cluster(account: int = 1, **settings: Any) -> Cluster:
    return Cluster("clu_1", "c", "", "k8s", "aws", account, "c-1", "ready", settings, MOMENT, MOMENT)


@pytest.mark.parametrize(
    ("block", "home"),
    [
        ({"cloudAccount": 1, "region": "us-east-1"}, cluster()),
        ({"cloudAccount": 1}, cluster(region_name="us-east-1")),
        ({"cloudAccount": 7, "region": "eu-west-1"}, cluster(7, region_name="eu-west-1")),
    ],
)
def test_the_cluster_s_own_account_and_region_are_in_reach(block: dict[str, Any], home: Cluster) -> None:
    assert out_of_reach(provider(**block), home) == ""


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"cloudAccount": 2}, "us-east-1 of cloud account 2, the cluster in us-east-1 of cloud account 1"),
        ({"cloudAccount": 1, "region": "eu-west-1"}, "eu-west-1 of cloud account 1, the cluster in us-east-1"),
    ],
)
def test_another_account_or_region_is_not_and_the_text_names_both(block: dict[str, Any], words: str) -> None:
    assert words in out_of_reach(provider(**block), cluster())


def test_a_node_of_no_cluster_cannot_be_one_of_ec2_and_can_be_simulated() -> None:
    assert "names none" in out_of_reach(provider(cloudAccount=1), None)
    assert out_of_reach(provider("simulated"), None) == out_of_reach(provider("simulated"), cluster()) == ""
