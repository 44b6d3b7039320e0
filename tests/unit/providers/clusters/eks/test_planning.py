"""The plan of a cluster on EKS names everything that is made, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.nodes.offers import ClusterVersion
from stockyard.domain.records import Cluster
from stockyard.providers.clusters.eks import planning
from tests.unit.providers.clusters.eks.conftest import H100, settings

RATES = {"eks": 0.10, "eks_extended": 0.50, "nat_gateway": 0.045, "public_ipv4": 0.005, "gp3": 0.08, "efs": 0.30}
HOURS = {"m6i.xlarge": 0.192, "p5.48xlarge": 55.04}


class Prices:
    """A catalogue of one region."""

    def instance(self, _region: str, name: str) -> dict[str, Any] | None:
        return {"usd_hour": HOURS[name]} if name in HOURS else None

    def spot(self, _region: str) -> None:
        return None

    def rate(self, _region: str, item: str) -> float | None:
        return RATES.get(item)

    def offered(self, _region: str, _name: str) -> bool | None:
        return None

    def versions(self, _region: str) -> tuple[ClusterVersion, ...]:
        return (ClusterVersion("1.35", "2025-01-01", "2026-06-01", "2027-06-01"),)

    def why_unknown(self, region: str) -> str:
        return f"Prices of {region} are being fetched."

    def sheet(self, _account: int) -> bytes | None:
        return None


def cluster(created_at: str = "2026-01-01T00:00:00.000Z", **values: Any) -> Cluster:
    return Cluster(
        "clu_1", "a", "d", "k8s", "aws", 1, "a-0123456789ab", "preparing", settings(**values), created_at, created_at,
        kubernetes_version="1.35",
    )  # fmt: skip


def prices_of(whose: Cluster) -> dict[str, float | None]:
    return {item.name: item.hour for item in planning.price_items(whose, Prices())}


def nodes_of(whose: Cluster) -> dict[str, float | None]:
    return {item.name: item.hour for item in planning.group_items(whose, Prices())}


def test_the_usual_cluster_costs_its_control_plane_a_gateway_and_a_node() -> None:
    usual = cluster()
    assert prices_of(usual) == {
        "EKS control plane": 0.10,
        "NAT gateway": 0.045,
        "public IPv4 address": 0.005,
        "EFS, empty at first; 0.3 USD a GB and month": 0.0,
    }
    assert nodes_of(usual) == {
        "1 node of pool system (m6i.xlarge) always": 0.192,
        "disk gp3 20 GiB of pool system always": pytest.approx(0.08 * 20 / 730),
    }


def test_a_version_in_extended_support_costs_more() -> None:
    assert prices_of(cluster("2026-07-01T00:00:00.000Z", support="extended"))[
        "EKS control plane in extended support"
    ] == pytest.approx(0.60)
    assert "EKS control plane" in prices_of(cluster(support="extended")), "before standard support ends"


def test_each_zone_may_have_a_gateway_of_its_own() -> None:
    items = prices_of(cluster(nat_gateways="zone", shared_storage=False))
    assert items["NAT gateway"] == pytest.approx(3 * 0.045)
    assert items["public IPv4 address"] == pytest.approx(3 * 0.005)
    assert not any(name.startswith("EFS") for name in items)


def test_one_gateway_for_all_zones_is_told_with_what_one_in_each_costs() -> None:
    remarks = planning.plan(cluster(), Prices(), "vantage").remarks
    (remark,) = [each for each in remarks if each.pointer == "/settings/nat_gateways"]
    assert "costs 36.50 USD a month; all of them depend on the first" in remark.detail
    assert "One in each would cost 109.50" in remark.detail
    in_each = planning.plan(cluster(nat_gateways="zone"), Prices(), "vantage").remarks
    assert not [each for each in in_each if each.pointer == "/settings/nat_gateways"]


def test_nodes_at_first_and_nodes_that_stay_are_told_apart() -> None:
    priced = cluster(node_groups=[{**H100, "count": 3, "min_size": 1}])
    assert nodes_of(priced)["2 nodes of pool h100 (p5.48xlarge) at first"] == pytest.approx(2 * 55.04)
    assert nodes_of(priced)["1 node of pool h100 (p5.48xlarge) always"] == pytest.approx(55.04)
    # nodes have claims, which are billed for themselves
    assert not any("node" in name for name in prices_of(priced))
    block = cluster(node_groups=[{**H100, "count": 1, "capacity_reservation_id": "cr-0aaa"}])
    line = "1 node of pool h100 (p5.48xlarge) at first, at what its capacity block was bought for"
    assert nodes_of(block)[line] is None


def test_a_type_without_a_price_has_none() -> None:
    priced = cluster(node_groups=[{"name": "odd", "role": "system", "instance_type": "x9.huge"}])
    assert nodes_of(priced)["1 node of pool odd (x9.huge) at first"] is None


def test_a_plan_names_everything() -> None:
    priced = cluster(node_groups=[{**H100, "fabric": "efa"}])
    creates = planning.plan(priced, Prices(), "vantage").creates
    kinds = [kind for kind, _ in creates]
    assert {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)} == {
        "vpc": 1,
        "internet gateway": 1,
        "subnet": 6,
        "nat gateway": 1,
        "route table": 2,
        "vpc endpoint": 1,
        "iam role": 6,
        "eks cluster": 1,
        "access entry": 3,
        "security group": 2,
        "placement group": 1,
        "launch template": 2,
        "node group": 2,
        "add-on": 5,
        "pod identity": 1,
        "file system": 1,
        "mount target": 1,
        "storage class": 1,
    }
    assert ("node group", "h100 (p5.48xlarge, 1 at first, 0 to 4)") in creates


def test_a_prefix_that_makes_names_too_long_is_refused() -> None:
    assert list(planning.name_findings(cluster(), "vantage")) == []
    (finding,) = planning.name_findings(cluster(), "v" * 40)
    assert finding.pointer == "/name"
