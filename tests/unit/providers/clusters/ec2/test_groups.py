"""Node groups of a cluster become pools and can be shown as groups again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stockyard.domain.models.base import read
from stockyard.domain.node_groups import worker_groups
from stockyard.domain.pool_manifests import pool_manifest
from stockyard.providers.clusters.ec2.groups import group_of_pool, pool_of_group
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


def test_a_pool_is_shown_as_the_group_that_it_came_as() -> None:
    plain = {"name": "b", "role": "worker", "min_size": 0, "max_size": 0, "instance_types": ["t3.large"]}
    for group in groups_of(WORKERS, plain):
        assert group_of_pool(pool_of_group(group)) == group
        assert pool_manifest(pool_of_group(group)) == group


def test_what_a_group_cannot_say_is_shown_as_ours() -> None:
    (group,) = groups_of(WORKERS)
    pool = replace(pool_of_group(group), limits={"nodes": "4", "usd_hour": "3"})
    assert group_of_pool(pool) == group
    assert pool_manifest(pool)["kind"] == "Pool"
    assert pool_manifest(pool)["spec"]["limits"] == {"nodes": "4", "usd_hour": "3"}
