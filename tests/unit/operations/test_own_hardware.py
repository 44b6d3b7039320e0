"""Own machines come before all that are rented, whatever price their owner says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from stockyard.domain.nodes.offers import Gpus, InstanceOffer, RegionOffers, SpotPrice, SpotPrices
from stockyard.domain.nodes.records import NewClaim
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.values import ids
from stockyard.operations.costs.present_prices import PresentPrices
from stockyard.operations.fleet.explain import explain_claim, plan_claim
from stockyard.operations.node_providers.catalog import load
from stockyard.operations.node_providers.types import list_types
from stockyard.ports import Create
from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.worlds.own_hosts import KIND, OWN_HOSTS, with_kinds
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

REGION, GPU = "us-east-1", "nvidia.com/gpu"
CLUSTER = "clu_01KDVJXQ80000000000000000B"
HOSTS: tuple[dict[str, Any], ...] = (
    {"name": "plain", "resources": {"cpu": "4", "memory": "16Gi"}, "maxCapacity": 1},
    {"name": "gpu", "resources": {"cpu": "64", "memory": "512Gi", GPU: "1"}, "maxCapacity": 1},
)


@pytest.fixture(autouse=True)
def own_kind() -> Iterator[None]:
    with with_kinds(KIND):
        yield


def market(world: World, **own: Any) -> Nodes:
    """EC2 on demand and spot, far cheaper than any host, and two hosts of one's own that are idle."""
    nodes = Nodes.of(world.registry, world.services, world.clock)
    small = InstanceOffer("t3.medium", 2, 4096, "x86_64", 3, 6, 0.04)
    large = InstanceOffer("g4dn.xlarge", 4, 16384, "x86_64", 3, 10, 0.5, (Gpus("NVIDIA", "T4", 1, 16384),))
    offers = RegionOffers(REGION, "2026", {offer.name: offer for offer in (small, large)}, {"gp3": 0.0})
    prices = {offer.name: {"use1-az1": SpotPrice(0.001, 0.001, 0.001)} for offer in (small, large)}
    spot = SpotPrices(REGION, "2026", prices)
    config, no_session = Ec2NodesConfig("vantage", "https://api.example.test"), cast(Callable[..., Any], None)
    ec2 = Ec2Nodes(config, no_session, {REGION: offers}.get, {REGION: spot}.get)
    sources = {**nodes.services.node_sources, "ec2": ec2, OWN_HOSTS: SimulatedNodes(world.registry.store)}
    nodes.services = with_ports(nodes.services, node_sources=sources)
    block = {"cloudAccount": 1, "region": REGION, "capacityTypes": ["on-demand", "spot"]}
    nodes.provider("amazon", kind="ec2", block=block)
    moment, client = nodes.services.now(), ids.client_id("acme", CLUSTER, "c")
    settings = {"region_name": REGION}
    cluster = Cluster(CLUSTER, "demo", "d", "k8s", "aws", 1, client, "ready", settings, moment, moment)
    nodes.services.store.commit(Create(cluster))
    nodes.provider("hosts", *HOSTS, kind=OWN_HOSTS, **own)
    return nodes


def capacity_type(*ways: str) -> tuple[dict[str, Any], ...]:
    return ({"key": "karpenter.sh/capacity-type", "operator": "In", "values": list(ways)},)


def bound(nodes: Nodes, name: str, **fields: Any) -> NodeClaim:
    claim = nodes.claim(name, cluster_ref=CLUSTER, **fields)
    nodes.schedule()
    return nodes.now(claim)


@pytest.mark.parametrize("own", [{}, {"price_per_cost_unit": 0.05}], ids=["no price", "a price that is far dearer"])
def test_a_claim_of_a_cpu_and_one_of_a_gpu_go_to_the_idle_own_host(world: World, own: dict[str, Any]) -> None:
    nodes = market(world, **own)
    for name, resources in (("plain", {"cpu": "1"}), ("gpu", {"cpu": "1", GPU: "1"})):
        claim = bound(nodes, name, resources=resources, requirements=capacity_type("on-demand", "spot"))
        assert claim.placement is not None
        assert (claim.type_ref, claim.placement.owned) == (f"hosts.{name}", True)
        assert (claim.placement.usd_hour or 0.0) > 2 if own else claim.placement.usd_hour == 0.0
        assert PresentPrices(nodes.services, load(nodes.services)).of(claim) == claim.placement.usd_hour
    # Both hosts are in use now.
    for way in ("on-demand", "spot"):
        claim = bound(nodes, way, resources={"cpu": "1"}, requirements=capacity_type(way))
        assert claim.placement is not None
        assert (claim.type_ref, claim.placement.owned) == ("amazon.t3.medium", False)


def test_a_host_that_refuses_leaves_the_claim_to_what_is_rented(world: World) -> None:
    nodes = market(world)
    source = cast(SimulatedNodes, nodes.services.node_sources[OWN_HOSTS])
    source.refuses = lambda *_: True
    claim = bound(nodes, "one", resources={"cpu": "1"})
    assert claim.type_ref == "hosts.plain"
    payload = {"tenant": "acme", "claim_id": claim.id, "operation_id": claim.operation_id, "attempt": claim.attempt}
    nodes.run("provision_node", payload, most=40)
    nodes.schedule()
    assert nodes.now(claim).type_ref == "amazon.t3.medium"


def test_plans_explanations_and_types_say_own(world: World) -> None:
    nodes = market(world)
    plan = plan_claim(nodes.services, NewClaim(name="one", cluster_ref=CLUSTER, resources={"cpu": "1"}))
    assert plan["price"]["items"][0]["name"] == "hosts.plain (on-demand, own)"
    assert plan["verdict"].startswith(
        "hosts.plain (on-demand) of your own, which costs nothing more: your own come first of"
    )
    claim = bound(nodes, "one", resources={"cpu": "1"})
    explanation = explain_claim(nodes.services, claim.id)
    assert (explanation["chosen"]["owned"], explanation["chosen"]["usd_hour"], explanation["opt_in"]) == (True, 0.0, "")
    owned = {candidate["type"]: candidate["owned"] for candidate in explanation["candidates"]}
    assert owned == {"hosts.plain": True, "hosts.gpu": True, "amazon.t3.medium": False, "amazon.g4dn.xlarge": False}
    views, _ = list_types(nodes.services, limit=10)
    assert {view["name"]: view["usd_hour"] for view in views if view["owned"]} == {"hosts.plain": 0.0, "hosts.gpu": 0.0}
