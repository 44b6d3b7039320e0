"""Refusals and warnings of the catalogue for a cluster on EKS."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.catalog import Ec2PriceList
from stockyard.domain.models.clusters.clusters import settings_for
from stockyard.domain.records import Cluster
from stockyard.operations.tenant_prices import TenantPrices
from stockyard.ports import Finding, PriceList
from stockyard.providers.clusters.eks.validation import findings

GROUP = {"name": "g", "role": "gpu", "instance_type": "g6.xlarge", "accelerator_type": "l4", "zones": ["us-east-1a"]}
TODAY = "2026-11-25T03:00:00.000Z"


@pytest.fixture(scope="module")
def prices() -> PriceList:
    registry = MemoryRegistry()
    return TenantPrices(Ec2PriceList(registry.platform()), registry.store("acme"))


def findings_of(
    prices: PriceList, version: str = "1.36", now: str = TODAY, status: str = "accepting", **named: Any
) -> list[Finding]:
    settings = settings_for("aws", "k8s", "eks", "demo", named)
    cluster = Cluster("clu_1", "demo", "", "k8s", "aws", 1, "demo-0", status, settings, now, now)
    return list(findings(replace(cluster, kubernetes_version=version), prices))


def of_group(prices: PriceList, **named: Any) -> list[tuple[str, str]]:
    groups = [{"name": "first", "role": "system", "instance_type": "m6i.large"}, {**GROUP, **named}]
    return [(finding.pointer, finding.detail) for finding in findings_of(prices, node_groups=groups)]


def test_the_default_needs_no_remark(prices: PriceList) -> None:
    assert findings_of(prices) == []


@pytest.mark.parametrize("version", ["1.30", "1.37", "1.99"])
def test_a_version_that_eks_does_not_have_is_refused_with_those_that_it_has(prices: PriceList, version: str) -> None:
    (finding,) = findings_of(prices, version)
    assert finding.pointer == "/kubernetes_version"
    assert finding.detail == "must be a version that EKS supports now: 1.36, 1.35, 1.34, 1.33, 1.32, 1.31"
    assert not finding.warning


def test_a_version_without_support_is_no_longer_named(prices: PriceList) -> None:
    (finding,) = findings_of(prices, "1.31", "2026-11-26T00:00:00.000Z")
    assert finding.detail.endswith(": 1.36, 1.35, 1.34, 1.33, 1.32")
    (finding,) = findings_of(prices, "1.36", "2026-06-01T00:00:00.000Z")
    assert not finding.warning


def test_a_version_in_extended_support_is_one_whose_support_is_extended(prices: PriceList) -> None:
    refused, warned = findings_of(prices, "1.33")
    assert (refused.pointer, refused.warning) == ("/settings/support", False)
    assert refused.detail == "must be extended: standard support of 1.33 ended on 2026-07-29"
    assert [warned] == findings_of(prices, "1.33", support="extended")
    assert (warned.pointer, warned.warning) == ("/kubernetes_version", True)
    assert warned.detail == ("1.33 is in extended support, which costs more, and is not supported from 2027-07-29 on.")


def test_a_cluster_that_stands_may_change_when_its_standard_support_has_ended(prices: PriceList) -> None:
    assert [finding.warning for finding in findings_of(prices, "1.33", status="ready")] == [True, True]
    (refused,) = findings_of(prices, "1.37", status="ready")
    assert not refused.warning


def test_of_an_end_that_is_near_it_warns(prices: PriceList) -> None:
    (standard,) = findings_of(prices, "1.34")
    assert standard.detail == "Standard support of 1.34 ends on 2026-12-02: AWS upgrades the cluster then."
    (extended,) = findings_of(prices, "1.34", support="extended")
    assert extended.detail == "Standard support of 1.34 ends on 2026-12-02: extended support costs more."
    assert standard.warning
    assert extended.warning
    assert findings_of(prices, "1.34", "2026-10-02T00:00:00.000Z") == []
    assert len(findings_of(prices, "1.34", "2026-10-03T00:00:00.000Z")) == 1


AT = "/settings/node_groups/1"


@pytest.mark.parametrize(
    ("named", "pointer", "detail"),
    [
        ({"instance_type": "x9.none"}, "/instance_type", "x9.none is not offered in us-east-1."),
        (
            {"instance_type": "g5g.xlarge"},
            "/instance_type",
            "g5g.xlarge has arm64 processors; the images of the nodes are for x86_64.",
        ),
        (
            {"instance_type": "m6i.large"},
            "/instance_type",
            "m6i.large has no NVIDIA GPU, which a group with the role gpu needs.",
        ),
        (
            {"instance_type": "g4ad.xlarge"},
            "/instance_type",
            "g4ad.xlarge has no NVIDIA GPU, which a group with the role gpu needs.",
        ),
        ({"fabric": "efa"}, "/fabric", "g6.xlarge has no EFA."),
    ],
)
def test_a_type_that_does_not_fit_its_group_is_refused(
    prices: PriceList, named: dict[str, Any], pointer: str, detail: str
) -> None:
    assert of_group(prices, **named) == [(AT + pointer, detail)]


def test_types_that_fit(prices: PriceList) -> None:
    assert of_group(prices) == []
    assert of_group(prices, instance_type="p4d.24xlarge", fabric="efa") == []


def test_groups_beyond_what_an_account_has_at_first_are_warned_of(prices: PriceList) -> None:
    groups = [{**GROUP, "name": name, "max_size": size} for name, size in (("a", 450), ("b", 1000))]
    (finding,) = [f for f in findings_of(prices, node_groups=groups) if "450 nodes" in f.detail]
    assert (finding.pointer, finding.warning) == ("/settings/node_groups/1/max_size", True)


def test_the_group_that_nobody_has_named_moves_no_pointer(prices: PriceList) -> None:
    (finding,) = findings_of(prices, node_groups=[{**GROUP, "fabric": "efa"}])
    assert finding.pointer == "/settings/node_groups/0/fabric"


def test_of_a_region_that_is_not_known_only_sizes_are_checked(prices: PriceList) -> None:
    group = {**GROUP, "zones": ["us-west-2a"], "instance_type": "x9.none", "fabric": "efa"}
    assert findings_of(prices, region_name="us-west-2", node_groups=[group]) == []
    (finding,) = findings_of(prices, region_name="us-west-2", node_groups=[{**group, "instance_type": "g6.xlarge"}])
    assert finding.detail == "g6.xlarge has no EFA."


def test_efa_needs_a_version_that_allocates_interfaces(prices: PriceList) -> None:
    group = {**GROUP, "instance_type": "p4d.24xlarge", "fabric": "efa"}
    (warned,) = findings_of(prices, "1.34", "2026-07-01T00:00:00.000Z", node_groups=[group])
    (refused,) = findings_of(prices, "1.33", "2026-01-01T00:00:00.000Z", node_groups=[group])
    assert warned.pointer == refused.pointer == "/settings/node_groups/0/fabric"
    assert (warned.warning, refused.warning) == (True, False)
    assert "needs Kubernetes 1.35 or newer" in refused.detail


def test_machines_with_efa_in_several_zones_are_warned_of(prices: PriceList) -> None:
    group = {**GROUP, "instance_type": "p4d.24xlarge", "fabric": "efa", "zones": ["us-east-1a", "us-east-1b"]}
    (finding,) = findings_of(prices, node_groups=[group])
    assert (finding.pointer, finding.warning) == ("/settings/node_groups/0/zones", True)


SYSTEM = {"name": "system", "role": "system", "instance_type": "m6i.large"}


@pytest.mark.parametrize(
    ("system", "is_refused"),
    [
        ({}, False),
        ({"count": 0}, True),
        ({"taints": [{"key": "a", "effect": "NoSchedule"}]}, True),
        ({"taints": [{"key": "a", "effect": "PreferNoSchedule"}]}, False),
    ],
)
def test_a_cluster_begins_with_a_node_that_takes_every_pod(
    prices: PriceList, system: dict[str, Any], is_refused: bool
) -> None:
    groups = [GROUP, {**SYSTEM, **system}]
    refused = findings_of(prices, node_groups=groups)
    assert [finding.pointer for finding in refused] == ["/settings/node_groups"] * is_refused
    assert findings_of(prices, node_groups=groups, status="ready") == []
