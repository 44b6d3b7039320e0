"""Records of the table's stream that make the scheduler run a pass."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.adapters.dynamodb import codec, requests, stream
from stockyard.domain.records import Counter, Fact, NodeClaim, NodeProvider, Record
from stockyard.operations.node_providers.allowed_types import ID as ALLOWED
from stockyard.operations.scheduler.wake import Changes
from stockyard.ports import Add

NOW = "2026-01-01T00:00:00.000Z"
PROVIDER = NodeProvider("npr_1", "lab", "simulated", {"simulated": {}}, NOW, NOW)


def changes(records: list[dict[str, Any]]) -> Changes:
    return Changes.of(stream.changes(records))


def image(record: Record, **more: Any) -> dict[str, Any]:
    return {"eventName": "MODIFY", "dynamodb": {"NewImage": {**codec.to_item("acme", record), **more}}}


def counted(counter: str, by: int) -> dict[str, Any]:
    """The stream record of a counter after the store's own update."""
    update = requests.transact_item("table", "acme", Add(counter, by))["Update"]
    names, values = update["ExpressionAttributeNames"], update["ExpressionAttributeValues"]
    parts = update["UpdateExpression"].removeprefix("SET ").partition(" ADD ")[0].split(", ")
    attributes = {names[part.split(" = ")[0]]: values[part.split(" = ")[1]] for part in parts}
    return {"dynamodb": {"NewImage": {**codec.to_item("acme", Counter(counter, 1)), **attributes}}}


def test_only_lowered_capacity_counters_make_room() -> None:
    assert changes([counted("capacity/npr_1/small", -1)]).roomier == {"acme"}
    assert changes([counted("capacity/npr_1/small", 1)]).roomier == frozenset()
    assert changes([counted("quota/nodeclaims", -1)]).roomier == frozenset()


def test_changed_provider_makes_room_and_is_compared() -> None:
    result = changes([image(PROVIDER), image(PROVIDER)])
    assert result.roomier == {"acme"}
    assert result.providers == {("acme", "npr_1")}
    new = changes([{**image(PROVIDER), "eventName": "INSERT"}])
    assert new.roomier == {"acme"}
    assert new.providers == frozenset(), "a new one has no nodes"


@pytest.mark.parametrize(("fact", "roomier"), [(ALLOWED, {"acme"}), ("clu_1/observed", set())])
def test_only_fact_of_allowed_types_makes_room(fact: str, roomier: set[str]) -> None:
    result = changes([image(Fact(fact, "[]", NOW))])
    assert result.roomier == roomier
    assert result.providers == frozenset()


@pytest.mark.parametrize(("status", "roomier"), [("ready", {"acme"}), ("preparing", set())])
def test_ready_cluster_makes_room(status: str, roomier: set[str]) -> None:
    record = {"kind": {"S": "Cluster"}, "tenant": {"S": "acme"}, "sk": {"S": "clu_1"}, "status": {"S": status}}
    assert changes([{"dynamodb": {"NewImage": record}}]).roomier == roomier


def test_removed_records_and_waiting_claims_make_no_room() -> None:
    waits = NodeClaim("ncl_1", "one", NOW, NOW, due_at=NOW)
    removed = {"eventName": "REMOVE", "dynamodb": {"Keys": {}}}
    result = changes([image(waits), removed])
    assert (result.roomier, result.providers) == (frozenset(), frozenset())
    assert [claim.id for _, claim in changes([image(waits), removed, image(PROVIDER)]).claims] == ["ncl_1"]
