"""Node groups of a new cluster become pools, and the provider that serves them comes and goes with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.nodes.declared_types import block_of
from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster, Name, NodeProvider
from stockyard.domain.values.prices import PriceItem
from stockyard.errors import Conflict, InvalidInput
from stockyard.operations.clusters import nodes as cluster_nodes
from stockyard.operations.clusters.creation.create import create_cluster
from stockyard.operations.fleet.pools import groups as fleet_groups
from stockyard.operations.fleet.pools import pools, reconcile
from stockyard.operations.fleet.state import PendingGroup, Workload
from stockyard.operations.listing import every
from stockyard.operations.node_providers.providers import create_provider, delete_provider
from stockyard.operations.quotas.limits import set_quota, view
from stockyard.ports import Create, PriceList
from stockyard.providers.clusters.ec2 import groups
from stockyard.scheduling.packing.manifests import read_pod
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import MemoryPrices, MemoryProvider
from tests.unit.operations.fleet.pools.conftest import SMALL, USER, Yard

GROUP: dict[str, Any] = {
    "name": "workers",
    "role": "worker",
    "min_size": 2,
    "max_size": 5,
    "instance_types": ["t3.large"],
    "labels": {"team": "a"},
    "taints": [],
    "allocation_strategy": "lowest-price",
    "capacity_type": "on-demand",
}
CONTROL = {**GROUP, "name": "cp", "role": "control", "min_size": 1, "max_size": 1, "instance_types": ["t3.large"]}


class Grouping(MemoryProvider):
    """A driver that knows the provider of its clusters' groups."""

    def group_provider(self, cluster: Cluster, group: Group) -> ProviderDocument:
        kind = {**SMALL, "name": "t3.large"}
        return ProviderDocument(f"sim-{cluster.cloud_account_id}", "simulated", {"nodeTypes": [kind]})

    def group_items(self, cluster: Cluster, prices: PriceList) -> Sequence[PriceItem]:
        return groups.group_items(cluster, prices)


@pytest.fixture
def grouped(yard: Yard) -> Yard:
    yard.nodes.services = with_ports(yard.nodes.services, cluster_drivers={"memory": Grouping()})
    return yard


def with_groups(yard: Yard, name: str = "grouped", *group_documents: dict[str, Any]) -> Cluster:
    settings = {"autoscaler_node_groups": [CONTROL, *(group_documents or (GROUP,))]}
    new_cluster = yard.world.new_cluster(name, settings=settings)
    yard.cluster, _ = create_cluster(yard.nodes.services, new_cluster, USER)
    return yard.cluster


def providers(yard: Yard) -> dict[str, NodeProvider]:
    return {provider.name: provider for provider in every(yard.nodes.services.store, NodeProvider)}


def test_worker_groups_become_pools_in_the_creation_of_the_cluster(grouped: Yard) -> None:
    cluster = with_groups(grouped)
    (pool,) = pools.pools_of(grouped.nodes.services, cluster.id)
    assert (pool.name, pool.kind, pool.form, pool.floor, pool.limits) == (
        "workers",
        "dynamic",
        "group",
        2,
        {"nodes": "5"},
    )
    assert pool.provider_ref == "sim-1"
    assert "sim-1" not in providers(grouped), "it is made when the first node is"
    assert grouped.reasons(pool.id) == ["Created"]
    assert [view(grouped.nodes.services, name)["used"] for name in ("node_groups", "nodes_per_group")] == [1, 5]


def test_a_creation_that_is_sent_twice_makes_its_pools_once(grouped: Yard) -> None:
    new_cluster = grouped.world.new_cluster("twice", settings={"autoscaler_node_groups": [GROUP]})
    services = grouped.nodes.services
    first, _ = create_cluster(services, new_cluster, USER, "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV")
    again, _ = create_cluster(services, new_cluster, USER, "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert first.id == again.id
    assert len(pools.pools_of(services, first.id)) == 1


def test_the_floor_comes_up_on_the_implicit_provider_once_the_cluster_is_ready(grouped: Yard) -> None:
    with_groups(grouped)
    grouped.settle()
    assert not grouped.claims()
    grouped.put(status="ready")
    grouped.settle()
    assert [claim.phase for claim in grouped.claims()] == ["Available"] * 2
    assert {claim.provider_ref for claim in grouped.claims()} == {"sim-1"}
    assert {claim.properties["allocation_strategy"] for claim in grouped.claims()} == {"lowest-price"}
    assert providers(grouped)["sim-1"].implicit
    for claim in grouped.claims():
        labels = {"team": "a", "stockyard.dev/pool": "workers", "karpenter.sh/nodepool": "workers"}
        assert labels.items() <= claim.node_labels.items(), "the node is labelled as the group says"
        assert "allocation_strategy" not in claim.node_labels


def test_the_quota_of_providers_keeps_no_group_from_its_own(grouped: Yard) -> None:
    set_quota(grouped.nodes.services, "node_providers", 0, 0)
    with_groups(grouped)
    grouped.put(status="ready")
    grouped.settle()
    assert [claim.phase for claim in grouped.claims()] == ["Available"] * 2


def test_the_implicit_provider_goes_with_the_last_cluster(grouped: Yard) -> None:
    clusters = []
    for name in ("one-of-two", "two-of-two"):
        clusters.append(with_groups(grouped, name))
        grouped.put(status="ready")
        grouped.settle()
    for cluster, expected in zip(clusters, (True, False), strict=True):
        grouped.cluster = cluster
        grouped.put(status="deleting")
        for _ in range(20):
            if cluster_nodes.release(grouped.nodes.services, grouped.current(), "s").done:
                break
            grouped.nodes.relay()
        assert ("sim-1" in providers(grouped)) is expected
    assert not list(every(grouped.nodes.services.store, Pool))
    assert grouped.nodes.nothing_left()


def test_two_deletions_at_the_implicit_provider_at_a_time_both_end(
    grouped: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slower one finds the provider changed between its own writes; its workflow runs the phase again."""
    services = grouped.nodes.services
    create_provider(services, Grouping().group_provider(grouped.cluster, {}), USER, implicit=True)

    def overtaken(*arguments: Any) -> None:
        delete_provider(*arguments)
        raise Conflict("NodeProvider has another version")

    monkeypatch.setattr(fleet_groups, "delete_provider", overtaken)
    assert [provider for provider in every(services.store, NodeProvider) if provider.implicit]
    with pytest.raises(Conflict):
        fleet_groups.remove_providers(services)
    fleet_groups.remove_providers(services)
    assert not [provider for provider in every(services.store, NodeProvider) if provider.implicit]


def test_a_provider_that_a_person_made_is_used_and_stays(grouped: Yard) -> None:
    own = grouped.nodes.provider("sim-1", {**SMALL, "name": "t3.large"})
    grouped.nodes.services.store.commit(Create(Name("node-provider/sim-1", own.id)))
    with_groups(grouped)
    grouped.put(status="ready")
    grouped.settle()
    assert not providers(grouped)["sim-1"].implicit
    grouped.put(status="deleting")
    for _ in range(20):
        if cluster_nodes.release(grouped.nodes.services, grouped.current(), "s").done:
            break
        grouped.nodes.relay()
    assert "sim-1" in providers(grouped)


def test_a_driver_without_groups_leaves_the_choice_to_the_broker(yard: Yard) -> None:
    cluster = with_groups(yard)
    (pool,) = pools.pools_of(yard.nodes.services, cluster.id)
    assert pool.provider_ref == ""


def test_ec2_serves_groups_from_the_account_and_region_of_the_cluster(yard: Yard) -> None:
    document = groups.provider(yard.cluster)
    assert (document.name, document.kind) == ("ec2-1-us-east-1", "ec2")
    assert document.block["cloudAccount"] == 1
    assert document.block["capacityTypes"] == ["on-demand", "spot"]
    assert block_of(yard.nodes.provider("x", SMALL)) == {"nodeTypes": [SMALL]}


def test_the_price_of_floors_is_that_of_the_cheapest_type(yard: Yard) -> None:
    spot = {**GROUP, "name": "spot", "capacity_type": "spot"}
    cluster = with_groups(yard, "priced", GROUP, spot, {**GROUP, "name": "none", "min_size": 0})
    offer = MemoryPrices().instance("us-east-1", "t3.large")
    assert offer is not None
    items = {item.name: item.hour for item in groups.group_items(cluster, MemoryPrices())}
    disks = {
        f"disk gp3 50 GiB of 2 nodes of pool {name}": items.pop(f"disk gp3 50 GiB of 2 nodes of pool {name}")
        for name in ("workers", "spot")
    }
    assert len(set(disks.values())) == 1
    assert items == {"2 nodes of pool workers": 2 * offer["usd_hour"], "2 nodes of pool spot": None}


def test_pods_that_wait_bring_the_provider_of_a_group_without_a_floor(
    grouped: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_groups(grouped, "empty", {**GROUP, "min_size": 0})
    grouped.put(status="ready")
    grouped.settle()
    assert "sim-1" not in providers(grouped)
    container = {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    waiting = read_pod({"metadata": {"namespace": "default"}, "spec": {"containers": [container]}})
    workload = Workload((PendingGroup(waiting, 1, "g", ("default/p",)),), {}, {}, {}, "", 1)
    monkeypatch.setattr(reconcile, "workload_of", lambda *_: workload)
    grouped.settle()
    assert [claim.phase for claim in grouped.claims()] == ["Available"]
    assert providers(grouped)["sim-1"].implicit


class WithoutDriver:
    """A source that has no driver for some of its types."""

    def __init__(self, source: Any, *names: str) -> None:
        self._source, self._names = source, names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def node_types(self, provider: NodeProvider, account: Any) -> Sequence[NodeType]:
        kinds = self._source.node_types(provider, account)
        return [replace(kind, unserved="no driver") if kind.bare in self._names else kind for kind in kinds]


@pytest.mark.parametrize("names", [("t3.large",), ("t3.large", "t3.small")])
def test_a_group_of_types_of_which_no_node_can_be_made_is_refused(
    grouped: Yard, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    services = grouped.nodes.services
    monkeypatch.setitem(services.node_sources, "simulated", WithoutDriver(services.node_sources["simulated"], names[0]))
    document = [{**SMALL, "name": name} for name in names]
    monkeypatch.setattr(
        Grouping, "group_provider", lambda *_: ProviderDocument("sim-1", "simulated", {"nodeTypes": document})
    )
    group = {**GROUP, "instance_types": list(names)}
    at = "/settings/autoscaler_node_groups/1/instance_types/0"
    new_cluster = grouped.world.new_cluster("gpus", settings={"autoscaler_node_groups": [CONTROL, group]})
    if len(names) == 1:
        with pytest.raises(InvalidInput) as refused:
            create_cluster(services, new_cluster, USER)
        (fault,) = refused.value.errors
        assert (fault.pointer, fault.detail) == (at, "No node of t3.large can be made yet: no driver.")
        return
    _, warnings = create_cluster(services, new_cluster, USER)
    assert [warning.pointer for warning in warnings] == [at]
