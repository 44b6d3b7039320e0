"""Nodes of a cluster on EKS and the addresses of its private subnets."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from stockyard.providers.clouds.aws.resources.child_names import cluster_name
from stockyard.providers.clusters.eks import addresses, validation
from tests.unit.providers.clusters.eks.conftest import change, settings

SMALL = {"vpc_cidr": "10.0.0.0/22", "subnet_cidrs": ["10.0.0.0/25", "10.0.0.128/25"]}
"""Two private subnets of 123 addresses: 22 nodes with a small reserve, 8 with the usual one."""


def group(count: int, most: int, name: str = "system") -> dict[str, Any]:
    return {"name": name, "role": "system", "instance_type": "m6i.large", "count": count, "max_size": most}


def findings(eks: Any, *groups: dict[str, Any]) -> list[tuple[str, bool]]:
    eks.cluster = replace(eks.cluster, settings=settings(node_groups=list(groups), **SMALL))
    listed = addresses.findings(eks.cluster, validation.sent_groups(eks.cluster))
    return [(finding.pointer.removeprefix("/settings/node_groups/"), finding.warning) for finding in listed]


def test_more_nodes_than_addresses_are_refused_at_first_and_told_later(eks: Any) -> None:
    assert addresses.room(settings()) == 3 * (4096 - 5)
    assert findings(eks, group(1, 11), group(1, 11, "v")) == []
    assert findings(eks, group(1, 11), group(1, 12, "v")) == [("1/max_size", True)]
    assert findings(eks, group(23, 23)) == [("0/count", False), ("0/max_size", True)]


def test_the_network_keeps_less_where_the_groups_outgrow_its_usual_reserve(eks: Any, run: Any) -> None:
    def variables() -> dict[str, str]:
        client, name = eks.tenant().client("eks"), cluster_name(eks.cluster)
        addon = client.describe_addon(clusterName=name, addonName="vpc-cni")["addon"]
        environment: dict[str, str] = json.loads(addon["configurationValues"])["env"]
        return environment

    change(eks, node_groups=[group(1, 8)], **SMALL)
    run("addons")
    assert variables().keys() == {"ADDITIONAL_ENI_TAGS"}
    change(eks, node_groups=[group(1, 9)], **SMALL)
    eks.ensure("addons")
    assert (variables()["MINIMUM_IP_TARGET"], variables()["WARM_IP_TARGET"]) == ("10", "2")
    assert eks.ensure("addons").done
