"""Events are listed in the order in which they happened, also those of the same time."""

from __future__ import annotations

import pytest

from stockyard.domain.operation_records import Operation
from stockyard.domain.records import Event, NodeClaim, Outbox
from stockyard.lifecycle.change import Transition
from stockyard.operations.engine.tell import in_one_item, tell
from stockyard.ports import Create, Remove
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


def test_events_name_what_they_are_about(world: World) -> None:
    cluster = world.create()
    operation = world.services.store.get(Operation, cluster.operation_id or "")
    assert operation is not None
    claim = NodeClaim("ncl_1", "a", "", "", sequence=1)
    for about, name in ((cluster, "demo"), (operation, "demo"), (claim, "a")):
        event, sent = tell(world.services, "user:ann", about, Transition("X", None, None, "Told", ""))
        assert isinstance(event, Create)
        assert isinstance(sent, Create)
        assert event.record.about["name"] == sent.record.payload["detail"]["name"] == name


def test_what_a_commit_sends_is_one_item_instead_of_the_first() -> None:
    items = [Outbox(f"out_{number}", "event", {"detail_type": "x", "detail": {"n": number}}, "t") for number in (1, 2)]
    start = Outbox("out_3", "workflow", {"workflow": "w", "name": "n", "input": {}}, "t")
    writes = [Remove(Outbox, "out_0"), Create(items[0]), Remove(Outbox, "out_9"), Create(items[1]), Create(start)]
    removed, sent, last = in_one_item(writes)
    assert (removed, last) == (writes[0], writes[2])
    assert isinstance(sent, Create)
    assert isinstance(sent.record, Outbox)
    assert (sent.record.id, sent.record.kind) == ("out_1", "messages")
    assert [(kind, message.get("detail", {}).get("n")) for kind, message in sent.record.messages] == [
        ("event", 1), ("event", 2), ("workflow", None)
    ]  # fmt: skip
    assert in_one_item(writes[:3]) == writes[:3], "a single one stays as it is"
