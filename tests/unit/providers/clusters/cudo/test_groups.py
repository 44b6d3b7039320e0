"""Node groups of a cluster on Cudo are pools that ask for exactly one size, each served by a provider of that size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from local.cudo.stock import stock
from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolPatch
from stockyard.domain.pools.manifests import pool_manifest
from stockyard.domain.pools.node_groups import floor_resources
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster, NodeProvider
from stockyard.domain.values.requirements import Requirements
from stockyard.providers.clouds.cudo.values import machine_type
from stockyard.providers.clusters.cudo import groups
from stockyard.providers.clusters.cudo.settings import CudoSettings
from stockyard.providers.clusters.ec2 import groups as ec2_groups
from stockyard.providers.nodes.cudo.document import CudoBlock
from stockyard.providers.nodes.cudo.types import node_types

TIME = "2026-01-31T12:00:00.000Z"
TYPES = [machine_type(offered.document()) for offered in stock()]
GPUS: dict[str, Any] = {
    "id": "gpus",
    "role": "worker",
    "min_size": 1,
    "max_size": 4,
    "vcpus": 8,
    "memory_gib": 32,
    "boot_disk_size_gib": 120,
    "data_center_id": "us-dallas-1",
    "machine_type": "intel-broadwell-v100",
    "gpus": 1,
    "gpu_model": "V100",
    "labels": {"team": "a"},
}
ODD = {**GPUS, "id": "odd", "vcpus": 5, "memory_gib": 10, "machine_type": "intel-broadwell", "gpus": 0}
ODD.pop("gpu_model")


def group(document: dict[str, Any]) -> dict[str, Any]:
    """The group as the record of a cluster keeps it."""
    (normal,) = read(CudoSettings, {"autoscaler_node_groups": [document]}).normal()["autoscaler_node_groups"]
    return dict(normal)


def cluster(name: str = "one", account: int = 2) -> Cluster:
    return Cluster(f"clu_{name}", name, "d", "k8s", "cudo", account, f"{name}-0123456789ab", "ready", {}, TIME, TIME)


def provider(document: dict[str, Any]) -> NodeProvider:
    described = groups.provider(cluster(), group(document))
    return NodeProvider("npr_1", described.name, described.kind, {"cudo": described.block}, TIME, TIME)


def pool(document: dict[str, Any]) -> Pool:
    new_pool = groups.pool_of_group(group(document), "cudo-2")
    spec = new_pool.spec()
    return Pool(
        id="p", cluster_id="c", name=new_pool.name, created_at=TIME, updated_at=TIME, form=new_pool.form,
        document=new_pool.document, **spec,
    )  # fmt: skip


@pytest.mark.parametrize(("document", "name"), [(GPUS, "intel-broadwell-v100-8x32-1g"), (ODD, "intel-broadwell-5x10")])
def test_a_group_gets_exactly_its_machine(document: dict[str, Any], name: str) -> None:
    (node_type,) = node_types(provider(document), TYPES)
    assert node_type.bare == name
    assert node_type.capacity["ephemeral-storage"] == 120 * 2**30 * 1000
    pinned = Requirements.of(groups.pool_of_group(group(document)).requirements)
    properties = {**node_type.properties, "topology.kubernetes.io/zone": node_type.offerings[0].zones}
    assert all(requirement.has(properties[key][0]) for key, requirement in pinned.items())
    smaller = group({**document, "memory_gib": document["memory_gib"] - 1})
    refused = Requirements.of(groups.pool_of_group(smaller).requirements)
    assert not all(requirement.has(properties[key][0]) for key, requirement in refused.items())


def test_a_groups_document_is_one_that_a_person_could_send() -> None:
    for document in (GPUS, ODD):
        block = groups.provider(cluster(), group(document)).block
        assert read(CudoBlock, block).model_dump(by_alias=True, exclude_unset=True) == block


def test_groups_of_equal_figures_share_a_provider_and_others_do_not() -> None:
    first = groups.provider(cluster("one"), group(GPUS))
    alike = {**GPUS, "id": "more", "max_size": 9, "labels": {}}
    assert groups.provider(cluster("two"), group(alike)) == first
    changes = [{"vcpus": 9}, {"memory_gib": 31}, {"gpus": 2}, {"boot_disk_size_gib": 121}, {"data_center_id": "x"}]
    names = {groups.provider(cluster(), group({**GPUS, **change})).name for change in changes}
    names.add(groups.provider(cluster(account=3), group(GPUS)).name)
    assert len(names - {first.name}) == len(changes) + 1


def test_the_name_of_a_provider_fits() -> None:
    assert groups.provider(cluster(), group(GPUS)).name.startswith("cudo-2-us-dallas-1-")
    long = group({**GPUS, "data_center_id": "d" * 63, "machine_type": "m" * 63})
    assert len(groups.provider(cluster(account=2**31 - 1), long).name) <= 63


def test_a_worker_group_is_a_dynamic_pool_with_a_floor() -> None:
    new_pool = groups.pool_of_group(group(GPUS), "cudo-2")
    assert (new_pool.name, new_pool.kind, new_pool.form, new_pool.provider_ref) == (
        "gpus",
        "dynamic",
        "group",
        "cudo-2",
    )
    assert (new_pool.floor, new_pool.limits, new_pool.labels) == (1, {"nodes": "4"}, {"team": "a"})
    assert (new_pool.expire_after, new_pool.taints, new_pool.properties) == ("720h", (), {})


def test_nodes_of_a_floor_ask_for_the_gpus_of_their_group() -> None:
    assert floor_resources(pool(GPUS)) == {"nvidia.com/gpu": "1"}
    assert floor_resources(pool(ODD)) == {}


def test_a_pool_is_the_group_that_it_came_as() -> None:
    for document in (GPUS, ODD):
        assert groups.group_of_pool(pool(document)) == group(document)


def test_a_changed_pool_is_the_group_that_it_now_is() -> None:
    changed = read(PoolPatch, {"floor": 2, "limits": {"nodes": 7}, "labels": {"team": "b"}}).apply_to(pool(GPUS))
    moved = replace(pool(GPUS), **changed.spec(), form=changed.form, document=changed.document)
    expected = {**group(GPUS), "min_size": 2, "max_size": 7, "labels": {"team": "b"}}
    assert groups.group_of_pool(moved) == expected
    assert floor_resources(moved) == {"nvidia.com/gpu": "1"}


def test_a_pool_of_other_requirements_is_manifest_as_ours() -> None:
    elsewhere = ({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-newyork-1"]},)
    assert pool_manifest(replace(pool(GPUS), requirements=elsewhere))["kind"] == "Pool"


def test_groups_of_aws_are_no_groups_of_cudo() -> None:
    entry = {
        "name": "w", "role": "worker", "min_size": 0, "max_size": 1, "instance_types": ["t3.large"], "labels": {},
        "taints": [], "allocation_strategy": "lowest-price", "capacity_type": "on-demand",
    }  # fmt: skip
    of_aws = ec2_groups.pool_of_group(entry)
    assert groups.pool_of_group(groups.group_of_pool(of_aws), of_aws.provider_ref).spec() != of_aws.spec()
