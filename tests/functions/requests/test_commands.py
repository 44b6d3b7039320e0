"""Effects of request events when somebody else is in the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from functions.requests import commands
from stockyard import wiring
from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.patch import ClusterPatch
from stockyard.domain.records import Cluster
from stockyard.domain.values.rights import OPERATOR
from stockyard.errors import InvalidInput, PreconditionFailed
from stockyard.operations.clusters.changes import change as change_cluster
from stockyard.ports import Replace
from tests.unit.operations.clusters.balanced_world import BalancedWorld, balanced_world
from tests.unit.operations.conftest import World, make_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    test_world = make_world()
    monkeypatch.setattr(wiring, "services", lambda _: test_world.services)
    return test_world


def moved_meanwhile(world: World, monkeypatch: pytest.MonkeyPatch, times: int) -> Callable[[], int]:
    """The workflow writes the cluster just before the change is, this often."""
    original, changes_left = change_cluster.change_cluster, [times]

    def change(services: Any, cluster_id: str, version: int, *more: Any, **named: Any) -> Cluster:
        if changes_left[0]:
            changes_left[0] -= 1
            current = world.services.store.get(Cluster, cluster_id)
            assert current is not None
            world.services.store.commit(Replace(replace(current, version=current.version + 1)))
        return original(services, cluster_id, version, *more, **named)

    monkeypatch.setattr(change_cluster, "change_cluster", change)
    return lambda: changes_left[0]


def event_request(document: Mapping[str, Any] = MappingProxyType({"description": "new"})) -> Any:
    body = read(ClusterPatch, dict(document))
    return SimpleNamespace(tenant="acme", cluster="demo", body=body, actor="event:1", request_id="r", rights=OPERATOR)


def test_a_change_holds_for_the_cluster_as_it_is_by_then(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = world.create("demo")
    changes_left = moved_meanwhile(world, monkeypatch, 3)
    assert commands.COMMANDS["ChangeCluster"].handler(event_request())["cluster"] == cluster.id
    assert (changes_left(), world.cluster(cluster).description) == (0, "new")


def test_a_cluster_that_never_stands_still_is_said_to_be_in_the_way(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create("demo")
    moved_meanwhile(world, monkeypatch, 100)
    with pytest.raises(PreconditionFailed):
        commands.COMMANDS["ChangeCluster"].handler(event_request())


@pytest.fixture
def balanced(monkeypatch: pytest.MonkeyPatch) -> BalancedWorld:
    ready_world = balanced_world()
    monkeypatch.setattr(wiring, "services", lambda _: ready_world.world.services)
    return ready_world


def change_by_event(balanced: BalancedWorld, document: dict[str, Any]) -> Any:
    request = event_request(document)
    request.cluster = balanced.id
    return commands.COMMANDS["ChangeCluster"].handler(request)


def test_a_change_by_event_waits_for_its_turn_where_it_asks_to(balanced: BalancedWorld) -> None:
    balanced.patch({"settings": {"api_cidrs": ["198.51.100.1/32"]}})
    answer = change_by_event(balanced, {"description": "later", "queue": True})
    assert balanced.cluster.queue == (answer["operation_id"],)
    assert balanced.operation_of(answer["operation_id"]).request == {"description": "later"}


def test_profiles_of_a_change_by_event_are_looked_at(balanced: BalancedWorld) -> None:
    with pytest.raises(InvalidInput, match="have no profiles"):
        change_by_event(balanced, {"profiles": [{"name": "nowhere"}]})
