"""Machines that a source counts: how many claims get one, what is shown, and who loses a race for the last one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.operations.node_providers.catalog import Stock, availability, load
from stockyard.operations.node_providers.limited_types import counters_of
from stockyard.operations.node_providers.providers import delete_provider
from stockyard.operations.node_providers.types import get_type
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}}
COUNTED = "2026-01-31T12:00:00.000Z"


class _Counting(SimulatedNodes):
    """Implements ``CountsStock`` besides: ``stock`` is what its sheet would say."""

    counts_stock = True

    stock: Mapping[str, int] = {"small": 2}
    moment: str | None = COUNTED

    def totals(self, provider: NodeProvider) -> Mapping[str, int]:
        return self.stock

    def counted_at(self, provider: NodeProvider) -> str | None:
        return self.moment


@pytest.fixture
def source(world: World) -> _Counting:
    return _Counting(world.registry.store)


@pytest.fixture
def nodes(world: World, source: _Counting) -> Nodes:
    nodes = Nodes.of(world.registry, world.services, world.clock)
    source.refuses = lambda *way: way in nodes.refused
    nodes.services = with_ports(nodes.services, node_sources={"simulated": source})
    return nodes


def bound(nodes: Nodes, count: int) -> list[NodeClaim]:
    claims = [nodes.claim() for _ in range(count)]
    nodes.schedule()
    return [nodes.now(claim) for claim in claims]


def capacity(nodes: Nodes) -> dict[str, Any]:
    view = get_type(nodes.services, "lab.small")
    assert view["capacity"]["counted_at"] == COUNTED
    return {name: view["capacity"][name] for name in ("total", "claimed", "available")}


@pytest.mark.parametrize("most", [None, 1, 5])
def test_no_more_claims_are_bound_than_machines_there_are_and_the_document_allows(
    nodes: Nodes, most: int | None
) -> None:
    nodes.provider("lab", SMALL | ({} if most is None else {"maxCapacity": most}))
    total = min(2, 9 if most is None else most)
    claims = bound(nodes, 3)
    assert [bool(claim.type_ref) for claim in claims] == [True] * total + [False] * (3 - total)
    assert all(claim.placement.counted for claim in claims if claim.placement)
    assert capacity(nodes) == {"total": total, "claimed": total, "available": 0}
    assert get_type(nodes.services, "lab.small")["reason"] == "Full"


def test_a_new_count_is_used_at_once(nodes: Nodes, source: _Counting) -> None:
    provider = nodes.provider("lab", SMALL)
    waiting = bound(nodes, 3)[-1]
    source.stock, source.moment = {"small": 3}, "2026-01-31T12:00:01.000Z"
    nodes.schedule()
    assert nodes.now(waiting).type_ref == "lab.small"
    # A machine that went away takes no node with it, and there is room for none until two are given back.
    source.stock, source.moment = {"small": 2}, COUNTED
    assert capacity(nodes) == {"total": 2, "claimed": 3, "available": -1}
    catalog = load(nodes.services)
    assert availability(nodes.services, catalog, nodes.clock.now()).free == {"lab.small": 0}
    for claim in (waiting, *bound(nodes, 0)):
        nodes.delete(nodes.now(claim))
    assert counters_of(nodes.services, [provider]) == {(provider.id, "lab.small"): f"capacity/{provider.id}/small"}


def test_a_type_that_was_not_counted_has_no_machine(nodes: Nodes, source: _Counting) -> None:
    nodes.provider("lab", SMALL)
    source.stock = {}
    (claim,) = bound(nodes, 1)
    assert (claim.type_ref, capacity(nodes)["total"]) == ("", 0)


def test_who_finds_the_last_machine_gone_waits_again_and_takes_no_slot(nodes: Nodes, source: _Counting) -> None:
    provider = nodes.provider("lab", SMALL)
    (claim,) = bound(nodes, 1)
    nodes.refused.add(("lab", "small", "global"))
    nodes.relay()
    waiting = nodes.now(claim)
    assert (waiting.phase, waiting.reason, waiting.type_ref) == ("Pending", "InsufficientCapacity", "")
    assert nodes.used(provider, "small") == 0
    nodes.refused.clear()
    nodes.clock.advance(200)
    nodes.schedule()
    assert nodes.relay()[-1] == "available"
    nodes.delete(claim)
    nodes.relay()
    delete_provider(nodes.services, provider.id, "user:ann")
    assert nodes.nothing_left()


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(-1, 9)), st.sampled_from("abc"), st.none() | st.integers(0, 9)
)
def test_the_most_is_the_smaller_one_and_never_below_zero(
    totals: dict[str, int], name: str, declared_most: int | None
) -> None:
    most = Stock(totals, COUNTED).most(name, declared_most)
    counted = max(0, totals.get(name, 0))
    assert most == (counted if declared_most is None else min(counted, declared_most))
