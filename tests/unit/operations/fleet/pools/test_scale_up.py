"""Pods that wait get nodes: as few as they need, once, within limits, and with a reason where none comes."""

from __future__ import annotations

import gc
from collections import Counter as Tally
from typing import Any

import pytest

from stockyard.domain.pools.records import NewPool
from stockyard.domain.records import Fact
from stockyard.operations.fleet.pools import pools, reconcile, size
from stockyard.operations.fleet.state import Workload
from stockyard.operations.machines.observe import ATTENDED
from stockyard.scheduling.packing.manifests import read_pod
from tests.unit.operations.fleet.pools.conftest import LARGE, SMALL, Yard
from tests.unit.operations.fleet.pools.reports import living, pod, tell


def test_a_planned_node_is_bound_to_what_the_plan_has_priced_whatever_its_provider_calls_cheap(
    yard: Yard, report: Workload
) -> None:
    """The large type comes first by the costs that the provider writes down; in money the small one does."""
    kinds = [{**SMALL, "cost": 100}, {**LARGE, "cost": 1}]
    yard.nodes.provider("costs", *kinds)
    yard.dynamic_pool("burst", provider="costs")
    tell(report, (pod("1", "1Gi"), 1))
    yard.settle()
    assert [claim.type_ref for claim in living(yard)] == ["costs.small"]
    # A claim of somebody who leaves the choice to the provider goes by its costs.
    own = yard.nodes.claim("own", provider_ref="costs", resources={"cpu": "1"})
    yard.nodes.schedule()
    assert yard.nodes.now(own).type_ref == "costs.large"


def test_a_pool_with_nodes_for_pods_says_that_none_leaves(yard: Yard, report: Workload) -> None:
    yard.dynamic_pool("burst")
    for count, text in ((1, "1 node is available."), (3, "3 nodes are available.")):
        tell(report, (pod("6"), count))
        yard.settle()
        assert yard.condition(yard.now("burst"))[2] == text


def test_pods_are_packed_by_the_disk_that_the_pool_names(yard: Yard, report: Workload) -> None:
    """Both types are counted with 50 GiB: only a pool with a larger disk has nodes for a pod of 100."""
    disk = {"ephemeral-storage": "50Gi"}
    kinds = [{**each, "resources": {**each["resources"], **disk}} for each in (SMALL, LARGE)]
    yard.nodes.provider("disks", *kinds)
    yard.dynamic_pool("burst", provider="disks")
    container = {"resources": {"requests": {"cpu": "1", "ephemeral-storage": "100Gi"}}}
    waiting = read_pod({"metadata": {"namespace": "default"}, "spec": {"containers": [container]}})
    tell(report, (waiting, 2))
    yard.settle()
    assert living(yard) == []
    yard.dynamic_pool("wide", provider="disks", properties={"root_disk_gib": "300"})
    yard.settle()
    # Two of them fit on one disk of 300 GiB, of which pods have 269.
    (claim,) = living(yard, "wide")
    assert (claim.phase, claim.resources["ephemeral-storage"]) == ("Available", "200Gi")
    # What is left of it is known too.
    tell(report, (waiting, 1), running={str(claim.node_name): [(waiting, 2)]})
    yard.settle()
    assert len(living(yard, "wide")) == 2


def test_pending_pods_bring_the_cheapest_nodes_that_hold_them(yard: Yard, report: Workload) -> None:
    yard.dynamic_pool("burst")
    tell(report, (pod("1", "1Gi"), 6))
    yard.settle()
    # One large one holds what four small ones do, for the price of three.
    assert [(claim.type_ref, claim.phase) for claim in living(yard)] == [("sim.large", "Available")]
    (claim,) = living(yard)
    assert claim.resources["cpu"] == "6"
    assert claim.resources["pods"] == "6"
    named = {requirement["key"]: requirement["values"] for requirement in claim.requirements}
    assert named["vcluster.com/node-type"] == ["sim.large"]
    assert yard.condition(yard.current(), "PodsHaveRoom")[0] == "True"


def test_pods_beside_a_node_that_joined_and_is_not_reported_are_named(yard: Yard, report: Workload) -> None:
    """Somebody may have deleted it just then: until the agent vouches for its report nobody knows."""
    yard.dynamic_pool("burst")
    tell(report, (pod("1", "1Gi"), 2), message="no nodes available")
    yard.settle()
    (claim,) = living(yard)
    tell(report, (pod("1", "1Gi"), 2), message="no nodes available", nodes={})
    yard.look()
    status, _, text = yard.condition(yard.current(), "PodsHaveRoom")
    named = f"default/web-0 and 1 like it: node {claim.node_name} has joined and is not reported."
    assert (status, named in text) == ("True", True), text
    assert text.endswith("The cluster's scheduler says: no nodes available.")
    # A cluster in which nodes have come is told of soon.
    services = yard.nodes.services
    attended = services.store.get(Fact, f"{yard.cluster.id}/{ATTENDED}")
    assert attended is not None
    assert attended.value > services.now()


def test_the_same_pods_ask_for_nothing_twice(yard: Yard, report: Workload) -> None:
    """Whatever becomes of the claims meanwhile: they wait, are placed, launched, have joined."""
    yard.dynamic_pool("burst")
    tell(report, (pod("1", "2Gi"), 3))
    for step in (yard.look, yard.look, yard.nodes.schedule, yard.look, yard.nodes.relay, yard.look, yard.look):
        step()
        assert len(living(yard)) == len({claim.name for claim in living(yard)}) > 0
    assert yard.now("burst").claims_made == len(living(yard))


def test_a_pass_over_settled_pools_reads_claims_and_quotas_once(
    yard: Yard, report: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of claims, read twice, are most of what a pass takes; and no batch reads quotas again."""
    small = [{"key": "vcluster.com/node-type", "values": ["sim.small"]}]
    yard.dynamic_pool("burst", requirements=small)
    yard.settle()
    tell(report, (pod("2"), 25))
    store_type, reads = type(yard.nodes.services.store), Tally[str]()
    get, get_all = store_type.get, store_type.get_all

    def get_and_count(store: Any, kind: Any, name: str) -> Any:
        reads[f"{kind.__name__} {name}"] += 1
        return get(store, kind, name)

    def get_all_and_count(store: Any, kind: Any, names: Any, **_: Any) -> Any:
        reads.update([kind.__name__, *(f"{kind.__name__} {name}" for name in names)])
        return [record for name in names if (record := get(store, kind, name)) is not None]

    monkeypatch.setattr(store_type, "get", get_and_count)
    monkeypatch.setattr(store_type, "get_all", get_all_and_count)
    yard.look()
    monkeypatch.setattr(store_type, "get", get)
    monkeypatch.setattr(store_type, "get_all", get_all)
    assert len(living(yard)) == 25
    assert reads["NodeClaim"] == 1
    assert reads["Quota nodeclaims"] == 1


def test_a_pass_collects_garbage_only_when_it_has_ended(
    yard: Yard, report: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.dynamic_pool("burst")
    during: list[bool] = []
    monkeypatch.setattr(reconcile, "workload_of", lambda *_: during.append(gc.isenabled()))
    yard.look()
    assert (during, gc.isenabled()) == ([False], True)


def test_pods_that_run_take_room(yard: Yard, report: Workload) -> None:
    yard.dynamic_pool("burst")
    each = pod("2", "2Gi")
    tell(report, (each, 1))
    yard.settle()
    (first,) = living(yard)
    tell(report, running={first.node_name: [(each, 1)]})
    yard.settle()
    assert [claim.id for claim in living(yard)] == [first.id], "nobody waits"
    tell(report, (each, 1), running={first.node_name: [(each, 1)]})
    yard.settle()
    assert len(living(yard)) == 2


def test_static_nodes_are_room_before_anything_is_bought(yard: Yard, report: Workload) -> None:
    yard.pool("base", quantity=1)
    yard.dynamic_pool("burst")
    yard.settle()
    tell(report, (pod("1", "1Gi"), 2))
    yard.settle()
    assert not living(yard, "burst")
    tell(report, (pod("1", "1Gi"), 3))
    yard.settle()
    assert len(living(yard, "burst")) == 1


def test_static_pools_that_are_still_coming_are_room_too(yard: Yard, report: Workload) -> None:
    yard.pool("base", quantity=1)
    yard.dynamic_pool("burst")
    tell(report, (pod("1", "1Gi"), 2))
    yard.settle()
    assert not living(yard, "burst")


def test_headroom_is_kept_free(yard: Yard, report: Workload) -> None:
    yard.dynamic_pool("burst", headroom={"cpu": "2", "memory": "1Gi"})
    tell(report)
    yard.settle()
    assert len(living(yard)) == 1, "room for pods that may come"
    (first,) = living(yard)
    tell(report, running={first.node_name: [(pod("1"), 1)]})
    yard.settle()
    assert len(living(yard)) == 2, "what runs has taken of it"
    assert yard.condition(yard.current(), "PodsHaveRoom")[0] == "True"


def test_daemon_sets_that_are_yet_to_come_take_room(yard: Yard, report: Workload) -> None:
    yard.dynamic_pool("burst", requirements=[{"key": "vcluster.com/node-type", "values": ["sim.small"]}])
    agent = pod("500m", "256Mi")
    tell(report, (pod("1"), 2), daemons={"kube-system/agent": agent})
    yard.settle()
    assert len(living(yard)) == 2, "two pods of a core and the daemon do not fit on two cores"


def test_pods_spread_over_nodes_get_as_many(yard: Yard, report: Workload) -> None:
    yard.dynamic_pool("burst")
    labels = {"app": "db"}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    tell(report, (pod("100m", "100Mi", labels, affinity=apart), 3))
    yard.settle()
    assert len(living(yard)) == 3


def test_nothing_is_made_for_a_cluster_that_is_not_ready(yard: Yard, report: Workload) -> None:
    yard.dynamic_pool("burst")
    tell(report, (pod(), 1))
    yard.put(status="preparing")
    yard.look()
    assert not living(yard)


def test_a_deleted_pool_makes_no_nodes(yard: Yard, report: Workload) -> None:
    yard.dynamic_pool("burst")
    pools.delete_pool(yard.nodes.services, yard.cluster, "burst", "user:ann")
    tell(report, (pod(), 1))
    yard.look()
    assert not yard.claims("burst")


@pytest.mark.parametrize("number", range(1, 8))
def test_passes_that_overlap_buy_once(
    yard: Yard, report: Workload, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [{"key": "vcluster.com/node-type", "values": ["sim.small"]}]
    yard.dynamic_pool("a", requirements=small, limits={"nodes": 12})
    yard.dynamic_pool("b", requirements=small)
    tell(report, (pod("2"), 25))
    yard.before_commit(monkeypatch, number, yard.look)
    yard.look()
    yard.settle()
    counts = [len(living(yard, name)) for name in "ab"]
    assert sum(counts) == 25
    assert counts[0] <= 12


def test_passes_that_would_choose_different_pools_buy_once(
    yard: Yard, report: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one pass is about to make a node of the second pool, the first pool may take the pod."""
    yard.dynamic_pool("a", weight=2, limits={"nodes": 0})
    yard.dynamic_pool("b")
    yard.look()
    tell(report, (pod(), 1))

    def widen() -> None:
        pool = yard.now("a")
        fields = {**pool.spec(), "limits": {"nodes": "5"}}
        changed = NewPool(name=pool.name, form=pool.form, document=pool.document, **fields)
        pools.change_pool(yard.nodes.services, yard.current(), pool, pool.version, changed, "user:ann", "r")
        yard.look()

    yard.before_commit(monkeypatch, 1, widen)
    yard.look()
    yard.settle()
    assert (len(living(yard, "a")), len(living(yard, "b"))) == (1, 0)


@pytest.mark.parametrize("limit", ["MOST_ROWS", "MOST_BITS"])
def test_pools_with_too_many_ways_to_make_a_node_are_told_so(
    yard: Yard, report: Workload, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Labels that types leave open multiply; one tenant's pass must not need all memory."""
    yard.dynamic_pool("burst")
    monkeypatch.setattr(size, limit, 1)
    tell(report, (pod(), 1))
    yard.look()
    assert not living(yard)
    status, _, message = yard.condition(yard.current(), "PodsHaveRoom")
    assert status == "False"
    assert "1 different pods leave or name so many values of labels that there are 2 ways to make a node" in message
