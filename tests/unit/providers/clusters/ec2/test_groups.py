"""Node groups of a cluster become pools and can be shown as groups again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.nodes.offers import SpotPrice, SpotPrices
from stockyard.domain.pools.manifests import pool_manifest
from stockyard.domain.pools.node_groups import worker_groups
from stockyard.domain.records import Cluster
from stockyard.errors import InvalidInput
from stockyard.lifecycle.nodes.pool_drift import template_hash
from stockyard.providers.clusters.ec2.groups import bid_remarks, group_items, group_of_pool, pool_of_group
from stockyard.providers.clusters.ec2.settings import AwsSettings

WORKERS = {
    "name": "Batch_1",
    "role": "worker",
    "min_size": 1,
    "max_size": 4,
    "instance_types": ["m5.large", "c5.large"],
    "labels": {"team": "a"},
    "taints": [{"key": "batch", "effect": "NoSchedule"}, {"key": "gpu", "value": "yes", "effect": "NoExecute"}],
    "allocation_strategy": "capacity-optimized",
    "capacity_type": "spot",
}
CONTROL = {"name": "cp", "role": "control", "min_size": 1, "max_size": 1, "instance_types": ["t3.large"]}


def groups_of(*groups: dict[str, Any]) -> list[dict[str, Any]]:
    """The groups as the record of a cluster keeps them."""
    settings = read(AwsSettings, {"key_pair": "k", "autoscaler_node_groups": list(groups)})
    return list(settings.normal()["autoscaler_node_groups"])


def test_a_worker_group_is_a_dynamic_pool_with_a_floor() -> None:
    (group,) = groups_of(WORKERS)
    pool = pool_of_group(group, "amazon")
    assert (pool.name, pool.kind, pool.form, pool.provider_ref) == ("Batch_1", "dynamic", "group", "amazon")
    assert (pool.floor, pool.limits) == (1, {"nodes": "4"})
    assert pool.requirements == (
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large", "c5.large"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
    )
    assert pool.properties == {"allocation_strategy": "capacity-optimized"}
    assert pool.labels == {"team": "a"}
    assert pool.taints == (
        {"key": "batch", "effect": "NoSchedule"},
        {"key": "gpu", "value": "yes", "effect": "NoExecute"},
    )
    assert (pool.expire_after, pool.termination_grace_period) == ("720h", "")


def test_the_control_group_is_no_pool() -> None:
    settings = {"autoscaler_node_groups": groups_of(CONTROL, WORKERS)}
    assert [pool_of_group(group).name for group in worker_groups(settings)] == ["Batch_1"]
    assert worker_groups({}) == []


def test_a_pool_is_the_group_that_it_came_as_and_has_a_manifest_of_ours() -> None:
    plain = {"name": "b", "role": "worker", "min_size": 0, "max_size": 0, "instance_types": ["t3.large"]}
    for group in groups_of(WORKERS, plain):
        assert group_of_pool(pool_of_group(group)) == group
        assert pool_manifest(pool_of_group(group), "demo")["spec"]["cluster"] == "demo"


def test_what_a_group_cannot_say_is_shown_as_ours() -> None:
    (group,) = groups_of(WORKERS)
    pool = replace(pool_of_group(group), limits={"nodes": "4", "usd_hour": "3"})
    assert group_of_pool(pool) == group
    assert pool_manifest(pool)["kind"] == "Pool"
    assert pool_manifest(pool)["spec"]["limits"] == {"nodes": "4", "usd_hour": "3"}


FULL = {
    **WORKERS,
    "zones": ["us-east-1a", "us-east-1b"],
    "max_price": {"percent": 150},
    "root_disk_gib": 200,
    "update_strategy": {"type": "custom", "max_surge": "20%", "max_unavailable": 1},
}


def test_zones_bid_disk_and_strategy_are_of_the_pool_and_shown_again() -> None:
    (group,) = groups_of(FULL)
    pool = pool_of_group(group)
    assert (pool.zones, pool.max_price) == (("us-east-1a", "us-east-1b"), {"percent": 150})
    assert pool.update_strategy == FULL["update_strategy"]
    assert pool.properties["root_disk_gib"] == "200"
    assert group_of_pool(pool) == group
    before = template_hash(pool)
    assert template_hash(replace(pool, max_price={"usd_hour": 1.0}, update_strategy={})) == before, "what runs stays"
    assert template_hash(replace(pool, properties={**pool.properties, "root_disk_gib": "100"})) != before


def test_a_group_of_a_release_before_is_read_with_what_is_usual() -> None:
    (group,) = groups_of({**WORKERS, "max_price": None})
    older = {name: value for name, value in group.items() if name not in FULL.keys() - WORKERS.keys()}
    assert pool_of_group(older) == pool_of_group(group)


@pytest.mark.parametrize(
    ("wrong", "pointer", "words"),
    [
        ({"max_price": {"percent": 50}, "capacity_type": "on-demand"}, "max_price", "is a bid for spot"),
        ({"max_price": {"percent": 50, "usd_hour": 1}}, "max_price", "needs either percent or usd_hour"),
        ({"max_price": {"percent": 0}}, "max_price/percent", "more than 0"),
        ({"root_disk_gib": 7}, "root_disk_gib", "must be at least 8"),
        ({"root_disk_gib": 2001}, "root_disk_gib", "2000"),
        ({"root_disk_gib": 60, "instance_types": ["m5.large", "g6.xlarge"]}, "root_disk_gib", "at least 100"),
        ({"zones": ["us-east-1a", "eu-west-1a"]}, "zones/1", "is no zone of us-east-1"),
        ({"zones": ["us-east-1a", "us-east-1a"]}, "zones/1", ""),
        ({"update_strategy": {"type": "remove_first", "max_surge": 1}}, "update_strategy/max_surge", "custom only"),
        ({"update_strategy": {"type": "custom", "max_surge": 1}}, "update_strategy/max_unavailable", "required"),
        (
            {"update_strategy": {"type": "custom", "max_surge": "0%", "max_unavailable": 0}},
            "update_strategy/max_unavailable",
            "no node could be replaced",
        ),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_at_its_pointer(wrong: dict[str, Any], pointer: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        groups_of({**WORKERS, **wrong})
    (fault,) = caught.value.errors
    assert fault.pointer == f"/autoscaler_node_groups/0/{pointer}"
    assert words in fault.detail


def test_a_control_group_has_nothing_of_workers() -> None:
    with pytest.raises(InvalidInput) as caught:
        groups_of({**CONTROL, "update_strategy": {"type": "remove_first"}, "max_price": {"percent": 50}})
    assert {fault.pointer.rpartition("/")[2] for fault in caught.value.errors} == {"update_strategy", "max_price"}


class Prices:
    """Prices of two types on demand, and of one of them as spot."""

    def instance(self, _region: str, name: str) -> dict[str, float | None]:
        return {"usd_hour": {"m5.large": 0.1, "c5.large": 0.08}.get(name)}

    def rate(self, _region: str, item: str) -> float | None:
        return {"gp3": 0.073}.get(item)

    def spot(self, region: str) -> SpotPrices:
        zones = {"use1-az1": SpotPrice(0.03, 0.01, 0.05), "use1-az2": SpotPrice(0.06, 0.01, 0.07)}
        return SpotPrices(region, "2026", {"m5.large": zones})


@pytest.mark.parametrize(
    ("fields", "usd"),
    [
        ({"capacity_type": "on-demand"}, 0.16),
        ({"instance_types": ["m5.large"]}, 0.12),
        ({"instance_types": ["m5.large"], "max_price": {"percent": 40}}, 0.08),
        ({"instance_types": ["m5.large"], "max_price": {"usd_hour": 0.5}}, 0.12),
        ({"instance_types": ["m5.large", "c5.large"]}, None),
    ],
    ids=str,
)
def test_a_floor_costs_what_its_cheapest_type_does_and_as_spot_at_most_the_bid(
    fields: dict[str, Any], usd: float | None
) -> None:
    settings = {"region_name": "us-east-1", "autoscaler_node_groups": groups_of({**WORKERS, **fields, "min_size": 2})}
    cluster = Cluster("clu_1", "one", "", "k8s", "aws", 1, "one-0", "ready", settings, "t", "t")
    prices: Any = Prices()
    nodes, disks = group_items(cluster, prices)
    assert nodes.hour == usd
    assert (disks.name, disks.hour) == (f"disk gp3 50 GiB of 2 nodes of pool {WORKERS['name']}", pytest.approx(0.01))


def test_the_floor_of_a_group_of_types_with_gpus_asks_for_one() -> None:
    (gpus,) = groups_of({**WORKERS, "instance_types": ["g6.xlarge", "g5.xlarge"]})
    (both,) = groups_of({**WORKERS, "instance_types": ["g6.xlarge", "m5.large"]})
    assert pool_of_group(gpus).document.get("resources") == {"nvidia.com/gpu": "1"}
    assert pool_of_group(both).document == {}


def test_a_floor_of_nodes_with_gpus_has_the_disk_that_the_image_with_their_driver_needs() -> None:
    groups = groups_of({**WORKERS, "instance_types": ["g6.xlarge"], "min_size": 1})
    settings = {"region_name": "us-east-1", "autoscaler_node_groups": groups}
    prices: Any = Prices()
    cluster = Cluster("clu_1", "one", "", "k8s", "aws", 1, "one-0", "ready", settings, "t", "t")
    _, disk = group_items(cluster, prices)
    assert (disk.name, disk.hour) == (f"disk gp3 100 GiB of 1 node of pool {WORKERS['name']}", pytest.approx(0.01))
    # Where there are types without GPUs, a floor that asks for none has those.
    mixed = groups_of({**WORKERS, "instance_types": ["g6.xlarge", "m5.large"], "min_size": 1})
    plain = groups_of({**WORKERS, "instance_types": ["m5.large"], "min_size": 1})
    items = [
        list(group_items(replace(cluster, settings={**settings, "autoscaler_node_groups": each}), prices))
        for each in (mixed, plain)
    ]
    assert items[0] == items[1]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"max_price": {"percent": 1}},
            "1 % of on-demand: the cheapest now is m5.large in use1-az1 at 0.03",
        ),
        ({"max_price": {"usd_hour": 0.029}}, "0.029 USD an hour: the cheapest now is m5.large in use1-az1 at 0.03"),
        ({"max_price": {"percent": 30}}, ""),
        ({}, ""),
        ({"instance_types": ["c5.large"], "max_price": {"percent": 1}}, ""),
    ],
    ids=str,
)
def test_a_bid_that_nobody_meets_is_a_warning_of_the_plan(fields: dict[str, Any], expected: str) -> None:
    group = {**WORKERS, "capacity_type": "spot", "instance_types": ["m5.large"], **fields}
    settings = {"region_name": "us-east-1", "autoscaler_node_groups": groups_of(CONTROL, group)}
    prices: Any = Prices()
    remarks = list(
        bid_remarks(Cluster("clu_1", "one", "", "k8s", "aws", 1, "one-0", "ready", settings, "t", "t"), prices)
    )
    assert [remark.pointer for remark in remarks] == ["/settings/autoscaler_node_groups/1/max_price"] * bool(expected)
    assert all(expected in remark.detail and remark.warning for remark in remarks)
