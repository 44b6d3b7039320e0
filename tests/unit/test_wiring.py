"""What the scheduler takes from records of the table's stream."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard import wiring
from stockyard.adapters.dynamodb import codec, requests
from stockyard.domain.records import Counter, Fact, NodeClaim, NodeProvider, Record
from stockyard.operations.allowed_types import ID as ALLOWED
from stockyard.ports import Add

NOW = "2026-01-01T00:00:00.000Z"
PROVIDER = NodeProvider("npr_1", "lab", "simulated", {"simulated": {}}, NOW, NOW)


def image(record: Record, **more: Any) -> dict[str, Any]:
    return {"eventName": "MODIFY", "dynamodb": {"NewImage": {**codec.to_item("acme", record), **more}}}


def counted(counter: str, by: int) -> dict[str, Any]:
    """The record of a counter as the store's own update leaves it."""
    update = requests.transact_item("table", "acme", Add(counter, by))["Update"]
    names, values = update["ExpressionAttributeNames"], update["ExpressionAttributeValues"]
    parts = update["UpdateExpression"].removeprefix("SET ").partition(" ADD ")[0].split(", ")
    left = {names[part.split(" = ")[0]]: values[part.split(" = ")[1]] for part in parts}
    return {"dynamodb": {"NewImage": {**codec.to_item("acme", Counter(counter, 1)), **left}}}


def test_a_place_that_was_given_back_makes_room_and_one_that_was_taken_does_not() -> None:
    assert wiring.changes_of([counted("capacity/npr_1/small", -1)]).roomier == {"acme"}
    assert wiring.changes_of([counted("capacity/npr_1/small", 1)]).roomier == frozenset()
    assert wiring.changes_of([counted("quota/nodeclaims", -1)]).roomier == frozenset()


def test_a_provider_makes_room_and_is_compared_with_its_nodes() -> None:
    found = wiring.changes_of([image(PROVIDER), image(PROVIDER)])
    assert found.roomier == {"acme"}
    assert found.providers == {("acme", "npr_1")}
    new = wiring.changes_of([{**image(PROVIDER), "eventName": "INSERT"}])
    assert new.roomier == {"acme"}
    assert new.providers == frozenset(), "a new one has no nodes"


@pytest.mark.parametrize(("fact", "roomier"), [(ALLOWED, {"acme"}), ("clu_1/observed", set())])
def test_of_facts_only_the_allowed_node_types_make_room(fact: str, roomier: set[str]) -> None:
    found = wiring.changes_of([image(Fact(fact, "[]", NOW))])
    assert found.roomier == roomier
    assert found.providers == frozenset()


@pytest.mark.parametrize(("status", "roomier"), [("ready", {"acme"}), ("preparing", set())])
def test_a_cluster_that_is_ready_makes_room(status: str, roomier: set[str]) -> None:
    record = {"kind": {"S": "Cluster"}, "tenant": {"S": "acme"}, "sk": {"S": "clu_1"}, "status": {"S": status}}
    assert wiring.changes_of([{"dynamodb": {"NewImage": record}}]).roomier == roomier


def test_what_was_removed_and_what_waits_makes_none() -> None:
    waits = NodeClaim("ncl_1", "one", NOW, NOW, due_at=NOW)
    removed = {"eventName": "REMOVE", "dynamodb": {"Keys": {}}}
    found = wiring.changes_of([image(waits), removed])
    assert (found.roomier, found.providers) == (frozenset(), frozenset())
    assert [claim.id for _, claim in wiring.claims_of([image(waits), removed, image(PROVIDER)])] == ["ncl_1"]
