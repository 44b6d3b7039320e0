"""Node types for whose architecture their provider has no image are not placed, planned or shown as fitting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolCreate
from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment, NodeProvider
from stockyard.domain.values.requirements import ARCH, INSTANCE_TYPE, NODE_TYPE
from stockyard.operations.fleet.explain import explain_claim
from stockyard.operations.fleet.pools.plan import plan_pool
from stockyard.operations.fleet.pools.pools import create_pool
from stockyard.operations.fleet.templates import every_provider, supply, templates
from stockyard.operations.listing import every
from stockyard.operations.node_claims.environments import look_again
from stockyard.ports import Outcome, Replace
from stockyard.ports.node_work import EnvironmentWork
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from stockyard.scheduling.packing.manifests import read_pod
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

LARGE = {"cpu": "2", "memory": "4Gi"}
ARM = {"name": "arm", "resources": LARGE, "usdPerHour": 0.1, "properties": {ARCH: "arm64"}}
AMD = {"name": "amd", "resources": LARGE, "usdPerHour": 0.2, "properties": {ARCH: "amd64"}}


class Imaged(SimulatedNodes):
    """Has an image for amd64 alone in each cluster, which it learns with the environment."""

    has_topology = True
    needs_images = True

    def prepare(self, work: EnvironmentWork) -> Outcome:
        return replace(super().prepare(work), facts={"images": "amd64"})

    def location(self, provider: NodeProvider) -> tuple[str, str]:
        return "here", "1"

    def zones(self, provider: NodeProvider, environment: NodeEnvironment | None) -> frozenset[str]:
        return frozenset()

    def out_of_reach(self, provider: NodeProvider, cluster: Cluster | None) -> str | None:
        return None if cluster is not None else "the claim names no cluster"

    def out_of_zone(self, *_: object) -> None:
        return

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
    assert before == ["lab.amd"], "what may have no image is not taken while another type fits"
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


def arch(*names: str) -> list[dict[str, Any]]:
    return [{"key": ARCH, "operator": "In", "values": [*names]}]


@pytest.mark.parametrize(
    ("requirements", "placed_on"),
    [
        ([], "lab.amd"),
        (arch("amd64", "arm64"), "lab.arm"),
        (arch("arm64"), "lab.arm"),
        ([{"key": ARCH, "operator": "NotIn", "values": ["amd64"]}], "lab.arm"),
        ([{"key": INSTANCE_TYPE, "operator": "In", "values": ["arm"]}], "lab.arm"),
    ],
    ids=["any", "both named", "one named", "other excluded", "type named"],
)
def test_before_anybody_has_looked_only_who_asks_gets_what_may_have_no_image(
    ready: Nodes, requirements: list[dict[str, Any]], placed_on: str
) -> None:
    claim = ready.claim("one", cluster_ref="demo", requirements=requirements)
    candidates = explain_claim(ready.services, "one")["candidates"]
    assert next(each["type"] for each in candidates if each["rule"] is None) == placed_on
    cluster = cluster_of(ready)
    pool = read(PoolCreate, {"name": "p", "quantity": 1, "requirements": requirements}).new_pool()
    assert {"kind": "node", "name": placed_on} in plan_pool(ready.services, cluster, pool)["creates"]
    ready.schedule()
    placed = ready.now(claim).placement
    assert placed is not None
    assert placed.type == placed_on


def test_explanations_say_how_to_ask_for_what_may_have_no_image(ready: Nodes) -> None:
    excluding = {"key": ARCH, "operator": "NotIn", "values": ["s390x"]}
    ready.claim("one", cluster_ref="demo", requirements=(excluding,))
    candidates = {each["type"]: each for each in explain_claim(ready.services, "one")["candidates"]}
    arm = candidates["lab.arm"]
    text = f"whether lab has an image for arm64 there is known with its first node; ask by {ARCH}"
    assert (arm["rule"], arm["message"]) == ("Image", text)


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({}, ["lab.amd"]),
        ({"nodeSelector": {ARCH: "arm64"}}, ["lab.arm", "lab.amd"]),
        ({"nodeSelector": {INSTANCE_TYPE: "lab.arm"}}, ["lab.arm", "lab.amd"]),
        ({"nodeSelector": {ARCH: "s390x"}}, ["lab.amd"]),
    ],
)
def test_a_pool_makes_what_may_have_no_image_for_pods_that_nothing_else_fits(
    ready: Nodes, spec: dict[str, Any], names: list[str]
) -> None:
    pool = create_pool(ready.services, cluster_of(ready), read(PoolCreate, {"name": "p"}).new_pool(), "user:ann")
    (template,) = templates(supply(ready.services, cluster_of(ready)), [pool], pods=[read_pod({"spec": spec})])
    assert [each.name for each in template.node_types] == names


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
