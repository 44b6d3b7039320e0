"""A claim whose room begins later waits until then, says so, and is not looked at before."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from stockyard.domain.nodes.node_types import ANY
from stockyard.domain.records import Counter, NodeProvider
from stockyard.domain.values import times
from stockyard.errors import CapacityAwaited, InsufficientCapacity
from stockyard.operations.listing import every
from stockyard.operations.node_providers.catalog import own_scope
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

TEXT = "block cr-1 begins tomorrow"


@pytest.fixture
def nodes(world: World) -> Nodes:
    nodes = Nodes.of(world.registry, world.services, world.clock)
    nodes.provider("lab", {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 1})
    return nodes


def test_a_claim_waits_until_its_room_begins(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = nodes.clock.now() + timedelta(hours=20)
    original, tries = SimulatedNodes.launch, []

    def launch(source: SimulatedNodes, work: Any) -> Any:
        tries.append(work.now)
        if work.now < begin:
            raise CapacityAwaited(TEXT, reason="CapacityBlockNotStarted", again_at=times.to_text(begin))
        return original(source, work)

    monkeypatch.setattr(SimulatedNodes, "launch", launch)
    claim = nodes.claim("worker")
    nodes.schedule()
    nodes.relay()
    waiting = nodes.now(claim)
    condition = next(condition for condition in waiting.conditions if condition.type == "Scheduled")
    assert (waiting.phase, waiting.reason, waiting.message) == ("Pending", "CapacityBlockNotStarted", TEXT)
    assert (condition.status, condition.reason, condition.message) == ("False", "CapacityBlockNotStarted", TEXT)
    assert waiting.placement is None
    assert [counter for counter in every(nodes.services.store, Counter, "capacity/") if counter.value] == []
    for _ in range(3):
        nodes.clock.advance(3600)
        assert nodes.schedule()["bound"] == 0
        assert nodes.schedule(nodes.now(claim))["bound"] == 0
    assert nodes.now(claim) == waiting
    nodes.clock.advance(20 * 3600)
    nodes.schedule()
    nodes.relay()
    assert nodes.now(claim).phase == "Available"
    assert len(tries) == 2


def test_what_is_awaited_is_not_remembered_as_refused_for_others(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    original, claims = SimulatedNodes.launch, []
    again_at = times.to_text(nodes.clock.now() + timedelta(hours=1))

    def launch(source: SimulatedNodes, work: Any) -> Any:
        if work.claim.id == claims[0].id:
            raise CapacityAwaited(TEXT, reason="CapacityBlockExhausted", again_at=again_at)
        return original(source, work)

    monkeypatch.setattr(SimulatedNodes, "launch", launch)
    claims.append(nodes.claim("first"))
    nodes.schedule()
    nodes.relay()
    second = nodes.claim("second")
    nodes.schedule()
    nodes.relay()
    assert nodes.now(second).phase == "Available"
    assert nodes.now(claims[0]).reason == "CapacityBlockExhausted"


def test_what_an_account_alone_is_refused_sends_its_claim_on_and_nobody_else(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cases b56 and b58: the scope is shared by all tenants, a quota and a subnet are not."""
    cheap = ("small", "on-demand", ANY)
    nodes.provider("other", {"name": "large", "resources": {"cpu": "2", "memory": "4Gi"}, "cost": 1000})
    original = SimulatedNodes.launch

    def launch(source: SimulatedNodes, work: Any) -> Any:
        if work.provider.name == "lab":
            raise InsufficientCapacity("a quota is used up", code="Quota", refused=[cheap], own=[cheap])
        return original(source, work)

    monkeypatch.setattr(SimulatedNodes, "launch", launch)
    monkeypatch.setattr(SimulatedNodes, "scope", lambda *_: "everybody")
    claim = nodes.claim("worker")
    nodes.schedule()
    nodes.relay()
    assert (nodes.now(claim).reason, nodes.now(claim).phase) == ("InsufficientCapacity", "Pending")
    nodes.schedule()
    nodes.relay()
    assert nodes.now(claim).type_ref == "other.large"
    memory, now = nodes.services.unavailable_offerings, nodes.clock.now()
    assert memory is not None
    lab = next(provider for provider in every(nodes.services.store, NodeProvider, "") if provider.name == "lab")
    assert memory.refused("everybody", now) == frozenset()
    assert memory.refused(own_scope(lab.id), now) == {cheap}
    assert memory.refused(own_scope(lab.id), now + timedelta(minutes=4)) == frozenset()
