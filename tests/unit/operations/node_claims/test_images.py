"""Node types for whose architecture their provider has no image are not placed, planned or shown as fitting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.pools import PoolCreate
from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment, NodeProvider
from stockyard.domain.requirements import ARCH, NODE_TYPE
from stockyard.operations.fleet.templates import every_provider, supply
from stockyard.operations.listing import every
from stockyard.operations.node_claims.environments import look_again
from stockyard.operations.pools.plan import plan_pool
from stockyard.operations.scheduler.explain import explain_claim
from stockyard.ports import Outcome, Replace
from stockyard.ports.nodes import EnvironmentWork
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.ports import with_ports
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

LARGE = {"cpu": "2", "memory": "4Gi"}
ARM = {"name": "arm", "resources": LARGE, "usdPerHour": 0.1, "properties": {ARCH: "arm64"}}
AMD = {"name": "amd", "resources": LARGE, "usdPerHour": 0.2, "properties": {ARCH: "amd64"}}


class Imaged(SimulatedNodes):
    """Has an image for amd64 alone in each cluster, which it learns with the environment."""

    def prepare(self, work: EnvironmentWork) -> Outcome:
        return replace(super().prepare(work), facts={"images": "amd64"})

    def location(self, provider: NodeProvider) -> tuple[str, str]:
        return "here", "1"

    def zones(self, provider: NodeProvider, environment: NodeEnvironment | None) -> frozenset[str]:
        return frozenset()

    def out_of_reach(self, provider: NodeProvider, cluster: Cluster | None) -> str:
        return "" if cluster is not None else "the claim names no cluster"

    def out_of_zone(self, *_: object) -> str:
        return ""

    def architectures(self, provider: NodeProvider, environment: NodeEnvironment | None) -> frozenset[str]:
        return frozenset(filter(None, (environment.outputs if environment else {}).get("images", "").split(",")))


@pytest.fixture
def nodes(world: World) -> Nodes:
    nodes = Nodes.of(world.registry, world.services, world.clock)
    nodes.services = with_ports(nodes.services, node_sources={"simulated": Imaged(world.registry.store)})
    nodes.provider("lab", ARM, AMD)
    world.create()
    return nodes


@pytest.fixture
def ready(nodes: Nodes, world: World) -> Nodes:
    world.drive(cluster_of(nodes), "provision_cluster")
    return nodes


def cluster_of(nodes: Nodes) -> Cluster:
    (cluster,) = every(nodes.services.store, Cluster)
    return cluster


def settled(nodes: Nodes, claim: NodeClaim) -> NodeClaim:
    for _ in range(3):
        nodes.schedule()
        nodes.relay()
    return nodes.now(claim)


def scheduled(claim: NodeClaim) -> str:
    return next(condition.message for condition in claim.conditions if condition.type == "Scheduled")


def test_the_first_claim_finds_out_and_becomes_what_it_says_it_is_placed_on(ready: Nodes) -> None:
    claim = settled(ready, ready.claim("one", cluster_ref="demo"))
    assert (claim.phase, claim.type_ref) == ("Available", "lab.amd")
    assert scheduled(claim) == "Placed on lab.amd."


def test_what_is_known_holds_for_plans_supply_and_later_claims(ready: Nodes) -> None:
    cluster = cluster_of(ready)
    before = [each.name for each in every_provider(supply(ready.services, cluster), "all").node_types]
    assert before == ["lab.arm", "lab.amd"], "what is not known rules nothing out"
    settled(ready, ready.claim("one", cluster_ref="demo"))
    look_again(ready.services, cluster)
    assert [each.name for each in every_provider(supply(ready.services, cluster), "all").node_types] == ["lab.amd"]
    plan = plan_pool(ready.services, cluster, read(PoolCreate, {"name": "p", "quantity": 1}).new_pool())
    assert {"kind": "node", "name": "lab.amd"} in plan["creates"]
    second = ready.claim("two", cluster_ref="demo")
    ready.schedule()
    assert ready.now(second).type_ref == "lab.amd"
    candidates = {each["type"]: each for each in explain_claim(ready.services, "two")["candidates"]}
    arm = candidates["lab.arm"]
    assert (arm["rule"], arm["message"]) == ("Image", "lab has no image for arm64 there, only for amd64")


def test_a_claim_for_an_architecture_without_an_image_waits_and_says_why(ready: Nodes) -> None:
    only_arm: list[dict[str, Any]] = [{"key": ARCH, "operator": "In", "values": ["arm64"]}]
    claim = settled(ready, ready.claim("one", cluster_ref="demo", requirements=only_arm))
    assert (claim.phase, claim.placement) == ("Pending", None)
    assert "of an architecture for which there is no image" in claim.message


def test_a_planned_claim_of_which_nothing_is_left_fails_so_that_its_pool_plans_anew(ready: Nodes) -> None:
    only_arm: list[dict[str, Any]] = [{"key": NODE_TYPE, "operator": "In", "values": ["lab.arm"]}]
    claim = ready.claim("one", cluster_ref="demo", requirements=only_arm)
    current = ready.now(claim)
    ready.services.store.commit(Replace(replace(current, pool="burst", version=current.version + 1)))
    failed = settled(ready, claim)
    assert (failed.phase, failed.message) == ("Failed", "lab has no image for lab.arm, only for amd64.")


def test_a_pool_of_a_cluster_that_is_being_prepared_is_not_called_hopeless(nodes: Nodes) -> None:
    cluster = cluster_of(nodes)
    assert cluster.status != "ready"
    able = plan_pool(nodes.services, cluster, read(PoolCreate, {"name": "p", "quantity": 1}).new_pool())
    assert [warning["detail"] for warning in able["warnings"]] == [
        f"Cluster demo is {cluster.status}: its pools wait for it."
    ]
    never = {"name": "p", "quantity": 1, "requirements": [{"key": ARCH, "values": ["s390x"]}]}
    hopeless = plan_pool(nodes.services, cluster, read(PoolCreate, never).new_pool())
    assert "No node type fits now" in hopeless["warnings"][-1]["detail"]
