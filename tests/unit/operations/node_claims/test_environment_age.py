"""An old answer of a source about a cluster is asked for again by the next claim in need of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment, NodeProvider
from stockyard.domain.values.requirements import Requirement
from stockyard.domain.values.times import from_text
from stockyard.errors import VendorNotFound, VendorUnavailable
from stockyard.lifecycle.change_phases import CHANGE_CLUSTER
from stockyard.lifecycle.phases import BALANCED, CREATE_CLUSTER, PROCEDURES, procedure_of
from stockyard.operations.clusters.phases import RUNNER
from stockyard.operations.engine.advance import Fence
from stockyard.operations.fleet.templates import supply
from stockyard.operations.listing import every
from stockyard.ports import Outcome
from stockyard.ports.node_work import EnvironmentWork, NodeWork
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World
from tests.unit.operations.node_claims.test_environments import SMALL, Building
from tests.unit.operations.nodes import Nodes


class Ageing(Building):
    """Provider whose environments are stale an hour after they were found; ``finds`` counts."""

    has_topology = True

    finds = 0
    lost = False
    """Whether what the place names is gone."""

    def launch(self, work: NodeWork) -> Outcome:
        if self.lost:
            raise VendorNotFound("InvalidSubnetID.NotFound: there is no subnet", code="InvalidSubnetID.NotFound")
        return super().launch(work)

    def is_stale(self, environment: NodeEnvironment, provider: NodeProvider, now: datetime) -> bool:
        return now - from_text(environment.updated_at) > timedelta(hours=1)

    def prepare(self, work: EnvironmentWork) -> Outcome:
        self.finds += 1
        outcome = super().prepare(work)
        return replace(outcome, facts={"image": f"image-{self.finds}"})

    def location(self, provider: NodeProvider) -> tuple[str, str]:
        return "here", "1"

    def zones(self, provider: NodeProvider, environment: NodeEnvironment | None) -> frozenset[str]:
        return frozenset({"here"} if environment is not None else ())

    def out_of_reach(self, provider: NodeProvider, cluster: Cluster | None) -> None:
        return None

    def out_of_zone(
        self, provider: NodeProvider, environment: NodeEnvironment | None, requirement: Requirement
    ) -> str | None:
        zones = self.zones(provider, environment)
        return None if not zones or any(requirement.has(zone) for zone in zones) else "stands elsewhere"


def ageing(world: World) -> tuple[Nodes, Ageing]:
    """A ready cluster ``demo`` and a provider ``lab`` whose places grow old."""
    nodes = Nodes.of(world.registry, world.services, world.clock)
    source = Ageing(world.registry.store)
    source.things, source.meanwhile = set(), lambda: None
    nodes.services = with_ports(nodes.services, node_sources={"simulated": source})
    nodes.provider("lab", SMALL)
    world.create()
    world.drive(next(iter(every(world.services.store, Cluster))), "provision_cluster")
    return nodes, source


def test_what_has_grown_old_is_found_again_by_the_next_claim(world: World) -> None:
    nodes, source = ageing(world)

    def image_after(name: str) -> str:
        nodes.claim(name, cluster_ref="demo")
        nodes.schedule()
        assert nodes.relay() == ["available"]
        (environment,) = every(nodes.services.store, NodeEnvironment)
        return environment.outputs["image"]

    assert [image_after("one"), image_after("two")] == ["image-1", "image-1"]
    nodes.hours(2)
    source.fault = VendorUnavailable("not now")
    prepare, source.prepare = source.prepare, _unavailable
    assert image_after("three") == "image-1", "an old image is better than no node"
    source.prepare = prepare
    assert image_after("four") == "image-2"
    assert image_after("five") == "image-2"
    assert {claim.environment_ref for claim in every(nodes.services.store, NodeClaim)} == source.things


def test_a_network_that_has_changed_is_looked_at_by_the_next_claim(world: World) -> None:
    """Until then nobody believes what was known of its zones."""
    nodes, _ = ageing(world)
    cluster = next(iter(every(nodes.services.store, Cluster)))

    def environment_after(name: str) -> NodeEnvironment:
        nodes.claim(name, cluster_ref="demo")
        nodes.schedule()
        assert nodes.relay() == ["available"]
        (environment,) = every(nodes.services.store, NodeEnvironment)
        return environment

    assert environment_after("one").outputs["image"] == "image-1"
    assert supply(nodes.services, cluster).zones == {"lab": frozenset({"here"})}
    fence = Fence(Cluster, cluster.id, "op_1", 1)
    creation, change = procedure_of(PROCEDURES, CREATE_CLUSTER), procedure_of(PROCEDURES, CHANGE_CLUSTER, BALANCED)
    steps = ((creation, "security", False), (creation, "network", False), (change, "network", True))
    for procedure, phase, is_stale in steps:
        RUNNER.ensure(world.services, cluster, fence, procedure.phase(phase))
        (environment,) = every(nodes.services.store, NodeEnvironment)
        assert environment.is_stale is is_stale, (procedure.kind, phase)
    assert supply(nodes.services, cluster).zones == {}
    environment = environment_after("two")
    assert (environment.outputs["image"], environment.is_stale) == ("image-2", False)
    assert environment_after("three").outputs["image"] == "image-2"


def test_a_launch_that_misses_what_the_node_class_names_has_it_found_again(world: World) -> None:
    """Somebody has removed a subnet, an image or a profile: only the claim that meets it fails."""
    nodes, source = ageing(world)
    for name, outcome, image in (
        ("one", "available", "image-1"),
        ("two", "not_provisioned", "image-1"),
        ("three", "available", "image-2"),
    ):
        source.lost = outcome == "not_provisioned"
        nodes.claim(name, cluster_ref="demo")
        nodes.schedule()
        assert nodes.relay() == [outcome]
        (environment,) = every(nodes.services.store, NodeEnvironment)
        assert (environment.outputs["image"], environment.is_stale) == (image, outcome == "not_provisioned")
    (claim,) = (claim for claim in every(nodes.services.store, NodeClaim) if claim.name == "two")
    assert "InvalidSubnetID.NotFound" in claim.message


def _unavailable(_: EnvironmentWork) -> Outcome:
    raise VendorUnavailable("not now")
