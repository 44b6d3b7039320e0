"""Nodes of managed node groups leave when they are empty for ten minutes, down to the group's least size, and are never
given up for a cheaper one."""

from __future__ import annotations

from dataclasses import replace

from stockyard.operations.fleet.pools import pools
from stockyard.providers.clusters.eks import groups
from stockyard.providers.clusters.eks.settings import EksNodeGroup
from tests.unit.operations.fleet.disruption.conftest import POOL, Pods, pod

LARGE = "sim.large"


def node_group(pods: Pods, least: int = 1) -> None:
    """A pool as a group of the settings becomes, of large nodes of the simulated provider."""
    group = EksNodeGroup(
        name=POOL, role="system", instance_type="m6i.xlarge", count=least, min_size=least, max_size=3
    ).model_dump(mode="json")
    only_large = ({"key": "vcluster.com/node-type", "operator": "In", "values": [LARGE]},)
    new_pool = replace(groups.pool_of_group(group, "sim"), requirements=only_large)
    services = pods.yard.nodes.services
    draft = pools.draft(services, pods.yard.cluster.id, new_pool, "user:ann")
    services.store.commit(*pools.creation(services, draft, "user:ann"))


def test_empty_nodes_leave_after_ten_minutes_and_the_floor_stays(pods: Pods) -> None:
    node_group(pods)
    pods.waiting = [pod("7500m", "1Gi", f"app-{number}") for number in range(3)]
    pods.run(4)
    assert pods.types() == [LARGE] * 3
    pods.on = {name: [] for name in pods.on}
    pods.run(7)
    assert len(pods.claims()) == 3, "they may be needed again"
    pods.run(20)
    assert len(pods.claims()) == 1


def test_a_node_that_is_hardly_used_stays(pods: Pods) -> None:
    node_group(pods)
    pods.waiting = [pod("7500m", "1Gi", f"app-{number}") for number in range(2)]
    pods.run(4)
    for number, name in enumerate(sorted(pods.on)):
        pods.on[name] = [pod("1", "1Gi", f"app-{number}")]
    pods.run(40)
    assert len(pods.claims()) == 2
