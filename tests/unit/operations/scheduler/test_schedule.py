"""A scheduling pass explains claims that fit no node type, at a bounded cost and after it has placed the others."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.records import NodeClaim
from stockyard.operations.scheduler import schedule as schedule_claims
from stockyard.scheduling.explain import explain
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}}
SCARCE: dict[str, Any] = {"name": "scarce", "resources": {"cpu": "8", "memory": "16Gi"}, "maxCapacity": 0}


@pytest.fixture
def nodes(world: World) -> Nodes:
    return Nodes.of(world.registry, world.services, world.clock)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The resources of each request that a pass explains."""
    requests: list[Any] = []

    def counted(index: Any, request: Any, free: Any) -> Any:
        requests.append(dict(request.resources))
        return explain(index, request, free)

    monkeypatch.setattr(schedule_claims, "explain", counted)
    return requests


def waiting(nodes: Nodes, *cpus: int, priority: int = 0) -> list[NodeClaim]:
    return [nodes.claim(resources={"cpu": str(cpu)}, priority=priority) for cpu in cpus]


def test_equal_claims_are_explained_once(nodes: Nodes, looks: list[Any]) -> None:
    nodes.provider("lab", SMALL, SCARCE)
    never, full = waiting(nodes, *[64] * 20), waiting(nodes, *[8] * 20)
    assert nodes.schedule()["waiting"] == 40
    assert len(looks) == 2
    assert {nodes.now(claim).reason for claim in never} == {"NoMatchingNodeType"}
    assert {nodes.now(claim).reason for claim in full} == {"NoCapacity"}


def test_pass_explains_limited_number_of_requests(
    nodes: Nodes, looks: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule_claims, "EXPLAINED", 3)
    nodes.provider("lab", SMALL)
    first = waiting(nodes, 10, 11, 12)
    assert nodes.schedule()["waiting"] == len(looks) == 3
    before = [nodes.now(claim) for claim in first]
    urgent, late = waiting(nodes, 20, 21, 22, priority=50), waiting(nodes, 30)
    looks.clear()
    assert nodes.schedule() == {"bound": 0, "waiting": 7, "lost": 0, "left": 0}
    assert len(looks) == 3
    assert [nodes.now(claim) for claim in first] == before, "what was said is neither taken back nor said again"
    after = [nodes.now(claim) for claim in (*first, *urgent, *late)]
    assert {claim.reason for claim in after} == {"NoMatchingNodeType"}
    assert ["explanation" in claim.message for claim in after] == [False] * 6 + [True]
    nodes.schedule()
    assert [nodes.now(claim) for claim in (*first, *urgent, *late)] == after


def test_placeable_claims_are_placed_before_others_are_explained(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes.provider("lab", SMALL)
    (waits, fits) = waiting(nodes, 64, 1)
    placed: list[bool] = []
    wait = schedule_claims._wait

    def watched(*args: Any) -> None:
        placed.append(nodes.now(fits).placement is not None)
        wait(*args)

    monkeypatch.setattr(schedule_claims, "_wait", watched)
    nodes.schedule()
    assert (placed, nodes.now(waits).reason) == ([True], "NoMatchingNodeType")
