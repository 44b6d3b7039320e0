"""Types that may have no image are for pods that no other type fits."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.nodes.node_types import ON_DEMAND, Declaration, NodeType, Offering, node_type_of
from stockyard.domain.values.requirements import ARCH, INSTANCE_TYPE, NODE_TYPE, ZONE
from stockyard.operations.fleet.likely_types import only_served
from stockyard.scheduling.packing.manifests import read_pod

FAMILY = "karpenter.k8s.aws/instance-family"


def node_type(name: str, arch: str, cpu: str) -> NodeType:
    resources = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    properties = {ARCH: arch, FAMILY: name.partition(".")[0]}
    offerings = (Offering(ON_DEMAND, ("za",), 1.0),)
    return node_type_of(Declaration("lab", name, resources, properties=properties, offerings=offerings))


AMD = node_type("m5.large", "amd64", "4")
ARM, LARGE_ARM = node_type("m7g.large", "arm64", "4"), node_type("m7g.metal", "arm64", "64")
BOTH = {ARM.name, LARGE_ARM.name}


def wants(key: str, operator: str, *values: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]}]
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": rule}}


def cpu(amount: str) -> dict[str, Any]:
    return {"containers": [{"name": "a", "resources": {"requests": {"cpu": amount}}}]}


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({}, set()),
        (wants(ARCH, "In", "amd64", "arm64"), set()),
        (wants(ARCH, "In", "arm64"), BOTH),
        (wants(ARCH, "NotIn", "amd64"), BOTH),
        (wants(FAMILY, "In", "m7g"), BOTH),
        (wants(INSTANCE_TYPE, "In", "m7g.large"), {ARM.name}),
        (wants(NODE_TYPE, "NotIn", "lab.m5.large"), BOTH),
        (wants(NODE_TYPE, "NotIn", "m5.large", "m7g.large"), {LARGE_ARM.name}),
        (wants(ZONE, "In", "zb"), set()),
        (wants("team", "In", "a"), set()),
        (cpu("8"), {LARGE_ARM.name}),
        (cpu("99"), set()),
    ],
)
def test_a_pod_asks_for_what_fits_when_nothing_likely_does(spec: dict[str, Any], names: set[str]) -> None:
    pods = [read_pod({"spec": {}}), read_pod({"spec": spec})]
    assert only_served(pods, [AMD], [ARM, LARGE_ARM]) == names
