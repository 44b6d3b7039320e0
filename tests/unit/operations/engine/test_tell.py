"""Events are listed in the order in which they happened, also those of the same time."""

from __future__ import annotations

import pytest

from stockyard.domain.records import Event, NodeClaim
from stockyard.lifecycle.change import Transition
from stockyard.operations.engine.tell import tell
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes


@pytest.fixture
def nodes(world: World) -> Nodes:
    return Nodes.of(world.registry, world.services, world.clock)


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (300, 2, 65_537)])
def test_events_of_same_time_are_listed_by_sequence(nodes: Nodes, order: tuple[int, ...]) -> None:
    transition = Transition("NodeClaim", None, None, "Told", "")
    for sequence in order:
        claim = NodeClaim("ncl_1", "a", "", "", sequence=sequence)
        nodes.services.store.commit(*tell(nodes.services, "user:ann", claim, transition))
    listed = nodes.services.store.list(Event, where={"subject": "ncl_1"}).items
    assert [event.sequence for event in listed] == sorted(order)
