"""Pools become templates of the packer: with the types that their claims can be bound to, and what they have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolCreate
from stockyard.domain.records import NodeProvider
from stockyard.domain.values.requirements import ARCH
from stockyard.operations.fleet.pools import pools
from stockyard.operations.fleet.pools.claims import draft_claim
from stockyard.operations.fleet.pools.plan import plan_pool
from stockyard.operations.fleet.templates import Supply, every_provider, supply, templates
from stockyard.operations.node_providers.allowed_types import set_allowed_types
from stockyard.operations.node_providers.catalog import own_scope
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from stockyard.scheduling.packing.model import Pod, Pool, Problem, Taint, term
from stockyard.scheduling.packing.plan import grouped, pack
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.fleet.pools.conftest import Yard

GPU = {"name": "gpu", "resources": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": 1}, "usdPerHour": 2.0}
SCARCE = {"name": "scarce", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.05, "maxCapacity": 1}


def names(pool: Pool) -> Sequence[str]:
    return [node_type.name for node_type in pool.node_types]


def stock(yard: Yard) -> Supply:
    return supply(yard.nodes.services, yard.current())


def template(yard: Yard, **fields: Any) -> Pool:
    yard.dynamic_pool("burst", **fields)
    return now(yard)


def now(yard: Yard) -> Pool:
    services = yard.nodes.services
    claims = pools.claims_of(services, yard.cluster.id)
    (only,) = templates(stock(yard), pools.pools_of(services, yard.cluster.id), claims)
    return only


def pod(cpu: int = 1000, **requirements: str) -> Pod:
    entries = [{"key": key.replace("__", "/"), "values": [value]} for key, value in requirements.items()]
    return Pod("default", (), (("cpu", cpu), ("pods", 1000)), (term(entries),))


def planned(*pool: Pool, pods: Sequence[Pod]) -> tuple[Sequence[str], int]:
    """The types of the nodes, and how many pods are left out."""
    plan = pack(Problem(grouped((f"pod-{number}", each) for number, each in enumerate(pods)), tuple(pool)))
    return [claim.row.node_type.name for claim in plan.claims], sum(len(item.pods) for item in plan.left_out)


def test_a_dynamic_pool_has_what_it_asks_for(yard: Yard) -> None:
    pool = template(
        yard,
        weight=7,
        labels={"team": "a"},
        taints=[{"key": "k", "effect": "NoSchedule"}],
        limits={"nodes": 3, "cpu": "8", "usd_hour": "0.0105"},
    )
    assert names(pool) == ["sim.small", "sim.large"]
    assert [node_type.usd_hour for node_type in pool.node_types] == [0.1, 0.3]
    assert (pool.name, pool.weight, pool.taints) == ("burst", 7, (Taint("k"),))
    assert pool.labels == {"team": "a", "stockyard.dev/pool": "burst"}
    assert pool.limits == {"nodes": 3000, "cpu": 8000}
    assert (pool.money, pool.spent, pool.used) == (0.0105, 0.0, {}), "a limit in money is not rounded up"


def test_only_dynamic_pools_that_stay_make_nodes_for_pods(yard: Yard) -> None:
    yard.pool("fixed", quantity=1)
    yard.dynamic_pool("leaving")
    pools.delete_pool(yard.nodes.services, yard.current(), "leaving", "user:ann")
    assert names(template(yard)) == ["sim.small", "sim.large"]


def test_requirements_and_provider_decide_the_types(yard: Yard) -> None:
    yard.nodes.provider("lab", {"name": "tiny", "resources": {"cpu": "1", "memory": "1Gi"}, "usdPerHour": 0.01})
    yard.dynamic_pool("a-lab", provider="lab")
    yard.dynamic_pool("b-large", requirements=[{"key": "vcluster.com/node-type", "values": ["sim.large"]}])
    yard.dynamic_pool("c-none", requirements=[{"key": "example.com/disk", "values": ["fast"]}])
    packed_pools = templates(stock(yard), pools.pools_of(yard.nodes.services, yard.cluster.id))
    assert [names(pool) for pool in packed_pools] == [["lab.tiny"], ["sim.large"], []]


def test_types_with_extended_resources_are_there_for_pods_that_ask(yard: Yard) -> None:
    yard.nodes.provider("gpus", GPU)
    pool = template(yard)
    asking = replace(pod(), requests=(("cpu", 1000), ("nvidia.com/gpu", 1000), ("pods", 1000)))
    types, left_out = planned(pool, pods=[pod(), asking])
    assert (sorted(types), left_out) == (["gpus.gpu", "sim.small"], 0)


def test_what_is_full_not_allowed_or_refused_of_late_is_none_of_its_types(yard: Yard) -> None:
    services = yard.nodes.services
    yard.nodes.provider("lab", SCARCE)
    assert names(template(yard)) == ["lab.scarce", "sim.small", "sim.large"]
    yard.nodes.claim("first", provider_ref="lab", cluster_ref=yard.cluster.id)
    yard.nodes.schedule()
    assert names(now(yard)) == ["sim.small", "sim.large"], "the only place is taken"
    set_allowed_types(services, ["sim.large"], 0)
    assert names(now(yard)) == ["sim.large"]


def test_a_pod_that_fits_only_on_refused_types_is_told_so(yard: Yard) -> None:
    yard.nodes.provider("lab", GPU)
    pool, asking = template(yard, provider="sim"), pod(3000)
    assert pool.refused == ()
    services = yard.nodes.services
    assert services.unavailable_offerings is not None
    scopes = {name: own_scope(provider.id) for name, provider in stock(yard).catalog.providers.items()}
    for name in ("sim.large", "lab.gpu"):
        provider, _, node_type = name.partition(".")
        way = (node_type, "on-demand", "*")
        services.unavailable_offerings.remember(scopes[provider], [way], "x", services.clock.now())
    refused = [now(yard), every_provider(stock(yard), "*")]
    assert [[node_type.name for node_type in pool.refused] for pool in refused] == [
        ["sim.large"],
        ["sim.large", "lab.gpu"],
    ]

    def texts(*pods: Pod) -> list[tuple[str, str]]:
        plan = pack(Problem(grouped((f"pod-{number}", each) for number, each in enumerate(pods)), (refused[0],)))
        return [(reason.rule, reason.message) for item in plan.left_out for reason in item.reasons]

    text = "The pod fits only on node types that their cloud refused a moment ago (sim.large); they are tried again."
    assert texts(pod(), asking) == [("UnavailableOfferings", text)]
    assert texts(pod(99_000))[0][0] == "Resource", "it fits on no type of the pool"
    assert texts(pod(3000, disk="ssd"))[0][0] == "Requirement"


def test_claims_count_against_the_limits_until_they_are_gone(yard: Yard) -> None:
    pool = template(yard, floor=2, limits={"usd_hour": 1, "nodes": 5})
    yard.look()
    waiting = now(yard)
    yard.settle()
    assert now(yard).used == {"nodes": 2000, "cpu": 4000, "memory": 2 * 4 * 2**30 * 1000, "pods": 220_000}
    assert now(yard).spent == pytest.approx(0.2)
    assert (waiting.used, waiting.spent) == (now(yard).used, now(yard).spent), "before they are placed just the same"
    assert (pool.used, pool.spent) == ({}, 0.0)


def test_a_failed_claim_counts_only_while_its_machine_is_kept(yard: Yard) -> None:
    pool = yard.dynamic_pool("burst", limits={"nodes": 5})
    claim = replace(draft_claim(yard.nodes.services, yard.cluster.id, pool), phase="Failed")
    with_machine = replace(claim, kept_until=yard.nodes.services.now())
    counts = [
        packed_pool.used.get("nodes", 0)
        for each in (claim, with_machine)
        for packed_pool in templates(stock(yard), [pool], [each])
    ]
    assert counts == [0, 1000]


def test_a_claim_that_cannot_be_read_or_bound_harms_nobody(yard: Yard) -> None:
    pool = yard.dynamic_pool("burst", limits={"nodes": 5})
    claim = draft_claim(yard.nodes.services, yard.cluster.id, pool)
    unreadable = replace(claim, requirements=({"key": "k", "operator": "Odd"},))
    too_large = replace(claim, resources={"cpu": "900"})
    (packed_pool,) = templates(stock(yard), [pool], [unreadable, too_large])
    assert packed_pool.used == {"nodes": 2000, "cpu": 900_000}


def test_pods_are_planned_only_where_a_claim_could_be_bound(yard: Yard) -> None:
    """The scheduler of claims gives a claim that asks for a label no type that does not declare it."""
    arm = {"name": "arm", "resources": {"cpu": "2", "memory": "4Gi"}, "properties": {ARCH: "arm64"}, "usdPerHour": 0.4}
    yard.nodes.provider("lab", arm)
    asks = {ARCH.replace("/", "__"): "arm64"}
    (packed_for_arm,) = templates(stock(yard), [yard.dynamic_pool("burst")], pods=[pod(**asks)])
    assert planned(packed_for_arm, pods=[pod(**asks)]) == (["lab.arm"], 0)
    assert planned(now(yard), pods=[pod(example__x="y")]) == ([], 1)
    unlike = [{"key": "example/x", "operator": "NotIn", "values": ["z"]}]
    yard.dynamic_pool("unlike", requirements=unlike)
    packed_pools = templates(stock(yard), pools.pools_of(yard.nodes.services, yard.cluster.id))
    assert planned(*packed_pools, pods=[pod(example__x="y")]) == ([], 1)


class Located(SimulatedNodes):
    """Simulated machines that stand in zones of their own, which reach clusters of one account."""

    has_topology = True

    zone_names: frozenset[str] = frozenset()
    reaches = True

    def location(self, _: NodeProvider) -> tuple[str, str]:
        return ("region", "1")

    def out_of_reach(self, *_: object) -> str | None:
        return None if self.reaches else "far away"

    def out_of_zone(self, *_: object) -> None:
        return

    def zones(self, *_: object) -> frozenset[str]:
        return self.zone_names


@pytest.fixture
def locate(yard: Yard) -> Callable[..., Located]:
    def located(**fields: Any) -> Located:
        source = Located(yard.nodes.registry.store, lambda *_: False)
        for name, setting in fields.items():
            setattr(source, name, setting)
        yard.nodes.services = with_ports(yard.nodes.services, node_sources={"simulated": source})
        return source

    return located


def test_providers_out_of_reach_serve_no_pool_of_the_cluster(yard: Yard, locate: Callable[..., Located]) -> None:
    locate(reaches=False)
    assert names(template(yard)) == []
    everywhere = supply(yard.nodes.services, None)
    assert names(every_provider(everywhere, "all")) == ["sim.small", "sim.large"], "without a cluster all are in reach"


def test_any_zone_means_those_that_the_cluster_has(yard: Yard, locate: Callable[..., Located]) -> None:
    anywhere = {**GPU, "name": "any", "properties": {"topology.kubernetes.io/zone": "*"}}
    yard.nodes.provider("x", anywhere)
    locate(zone_names=frozenset({"b", "a"}))
    pool = template(yard, provider="x")
    assert [offering.zones for node_type in pool.node_types for offering in node_type.offerings] == [("a", "b")]
    assert names(every_provider(stock(yard), "all")) == ["x.any"], "types of other zones cannot be had"


class Grouped(SimulatedNodes):
    """Simulated machines that come out of node groups."""

    takes_from_groups = True


def test_providers_of_node_groups_serve_only_pools_that_name_them(yard: Yard) -> None:
    source = Grouped(yard.nodes.registry.store, lambda *_: False)
    yard.nodes.services = with_ports(yard.nodes.services, node_sources={"simulated": source})
    yard.dynamic_pool("any")
    yard.dynamic_pool("own", provider="sim")
    packed_pools = templates(stock(yard), pools.pools_of(yard.nodes.services, yard.cluster.id))
    assert [(pool.name, names(pool)) for pool in packed_pools] == [("any", []), ("own", ["sim.small", "sim.large"])]
    assert names(every_provider(supply(yard.nodes.services, None), "all")) == []
    claim = yard.nodes.claim("alone", cluster_ref=yard.cluster.id)
    named = yard.nodes.claim("named", cluster_ref=yard.cluster.id, provider_ref="sim")
    yard.nodes.schedule()
    assert yard.nodes.now(claim).reason == "NoMatchingNodeType"
    assert (yard.nodes.now(named).reason, yard.nodes.now(named).message) == (
        "ProviderOutOfReach",
        "Node provider sim serves the node groups of clusters, and no other claim.",
    )


def test_types_of_which_no_node_can_be_made_yet_are_no_pools(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.nodes.provider("lab", GPU)
    node_types = SimulatedNodes.node_types

    def without_image(self: SimulatedNodes, provider: NodeProvider, account: Any) -> Any:
        types = node_types(self, provider, account)
        return [replace(each, unserved="no image") if each.extended() else each for each in types]

    monkeypatch.setattr(SimulatedNodes, "node_types", without_image)
    pool = template(yard, provider="lab")
    assert (names(pool), pool.unserved) == ([], {"nvidia.com/gpu": "no image"})
    assert every_provider(stock(yard), "*").unserved == {"nvidia.com/gpu": "no image"}
    services, cluster = yard.nodes.services, yard.current()
    planned_pool = plan_pool(services, cluster, read(PoolCreate, {"name": "gpus", "provider": "lab"}).new_pool())
    text = "1 node type is left, for pods that ask for nvidia.com/gpu, and no node of it can be made yet: no image."
    assert (planned_pool["verdict"], planned_pool["rejected"]) == (text, [])
    assert text in [warning["detail"] for warning in planned_pool["warnings"]]
    floor = read(PoolCreate, {"name": "gpus", "provider": "lab", "floor": 1}).new_pool()
    assert plan_pool(services, cluster, floor)["verdict"].startswith("lab.gpu does not fit now, so its nodes will wait")
