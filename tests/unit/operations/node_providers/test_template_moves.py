"""Templates in places that move: each is looked at in its interval, and the provider says what it is at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.records import Fact, NodeProvider
from stockyard.errors import VendorRefused
from stockyard.operations.node_providers import template_moves
from stockyard.operations.node_providers.providers import create_provider, delete_provider
from stockyard.ports import Replace
from stockyard.ports.node_work import NodeWork, TemplateSource
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.sweeping import Reaper
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}}
MAIN = TemplateSource("nodes main", "main of nodes", 300, None)


class Following(SimulatedNodes):
    """Implements ``FollowsTemplates`` besides."""

    sources: Sequence[TemplateSource] = (MAIN,)
    revision = "a" * 40
    fault: VendorRefused | None = None
    looks = 0

    def template_sources(self, provider: NodeProvider) -> Sequence[TemplateSource]:
        return self.sources

    def newest(self, template: TemplateSource) -> str:
        self.looks += 1
        if self.fault is not None:
            raise self.fault
        return self.revision

    def moved(self, work: NodeWork) -> str | None:
        return None


@pytest.fixture
def source(world: World) -> Following:
    return Following(world.registry.store)


@pytest.fixture
def nodes(world: World, source: Following) -> Nodes:
    nodes = Nodes.of(world.registry, world.services, world.clock)
    nodes.services = with_ports(nodes.services, node_sources={"simulated": source})
    nodes.provider("lab", SMALL)
    return nodes


def now(nodes: Nodes) -> NodeProvider:
    (provider,) = nodes.services.store.list(NodeProvider).items
    return provider


def condition(nodes: Nodes) -> tuple[str, str, str]:
    (each,) = (each for each in now(nodes).conditions if each.type == template_moves.CONDITION)
    return each.status, each.reason, each.message


def moved(nodes: Nodes, minutes: float = 5) -> list[str]:
    """Names of the providers whose template has moved, in a pass after so many minutes."""
    nodes.hours(minutes / 60)
    return [provider.name for provider in template_moves.follow_all(nodes.services)]


def test_a_source_is_looked_at_in_its_interval_and_a_move_is_told(nodes: Nodes, source: Following) -> None:
    assert moved(nodes) == [], "what is seen first has not moved"
    assert condition(nodes) == ("True", "Fetched", f"main of nodes is at {'a' * 40}.")
    version = now(nodes).version
    assert (moved(nodes, 1), source.looks, moved(nodes, 4), source.looks) == ([], 1, [], 2)
    assert now(nodes).version == version, "nothing is written of what stays"
    source.revision = "b" * 40
    assert moved(nodes) == ["lab"]
    assert now(nodes).template_revisions == {MAIN.key: "b" * 40}
    assert (now(nodes).version, now(nodes).generation) == (version + 1, 1)


def test_a_source_that_does_not_answer_is_said_and_forgotten_after_a_day(nodes: Nodes, source: Following) -> None:
    moved(nodes)
    source.fault = VendorRefused("There is no such repository.", code="404")
    moved(nodes)
    status, reason, message = condition(nodes)
    assert (status, reason) == ("False", "FetchFailed")
    assert message.startswith("main of nodes could not be read since ")
    assert message.endswith(": There is no such repository.")
    version = now(nodes).version
    moved(nodes)
    assert (now(nodes).version, now(nodes).template_revisions) == (version, {MAIN.key: "a" * 40})
    assert moved(nodes, 24 * 60) == []
    assert now(nodes).template_revisions == {}
    source.fault = None
    assert (moved(nodes), now(nodes).template_revisions) == ([], {MAIN.key: "a" * 40})


def test_a_source_that_is_not_followed_says_why(nodes: Nodes, source: Following) -> None:
    source.sources = (replace(MAIN, blocker="it has credentials."),)
    moved(nodes)
    assert condition(nodes) == ("Unknown", "NotFollowed", "main of nodes is not followed: it has credentials.")
    assert source.looks == 0
    source.sources = ()
    moved(nodes)
    assert now(nodes).conditions == ()


def test_many_sources_are_looked_at_by_several_passes(nodes: Nodes, source: Following) -> None:
    source.sources = tuple(replace(MAIN, key=str(number)) for number in range(template_moves.MOST + 5))
    moved(nodes)
    assert source.looks == template_moves.MOST
    moved(nodes, 0)
    assert source.looks == template_moves.MOST + 5


def test_the_sweep_looks_by_a_worker_of_its_own_and_compares_soon_after_a_move(nodes: Nodes, source: Following) -> None:
    def sweep() -> Any:
        return Reaper(nodes.registry, nodes.clock, lambda _: nodes.services).run(reconciled=True)

    sweep()
    nodes.services.store.commit(Replace(replace(now(nodes), version=now(nodes).version + 1)))
    source.revision = "b" * 40
    nodes.hours(0.1)
    assert any("moved lab" in entry for entry in sweep()["done"])
    assert now(nodes).template_revisions == {MAIN.key: "b" * 40}


def test_nothing_is_left_of_a_provider_that_is_removed(nodes: Nodes) -> None:
    created = create_provider(
        nodes.services, ProviderDocument("other", "simulated", {"nodeTypes": [SMALL]}), "user:ann"
    )
    moved(nodes)
    assert nodes.services.store.get(Fact, template_moves.fact_id(created)) is not None
    delete_provider(nodes.services, "other", "user:ann")
    assert not [fact for fact in nodes.services.store.list(Fact, limit=1000).items if fact.id.startswith(created.id)]
