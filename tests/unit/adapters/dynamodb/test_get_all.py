"""Records that DynamoDB leaves unread are asked for again."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.adapters.dynamodb import codec
from stockyard.adapters.dynamodb.store import DynamoStore
from stockyard.domain.records import Fact
from stockyard.errors import StoreUnavailable

FACTS = [Fact(f"f-{number}", "v", "2026-01-31T12:00:00.000Z") for number in range(5)]


class Client:
    """Reads at most ``each`` keys of a call and hands the others back."""

    def __init__(self, each: int) -> None:
        self.each = each
        self.calls: list[int] = []

    def batch_get_item(self, RequestItems: dict[str, Any]) -> dict[str, Any]:  # noqa: N803
        ((table, request),) = RequestItems.items()
        assert request["ConsistentRead"] is True
        keys = request["Keys"]
        self.calls.append(len(keys))
        items = {fact.id: codec.to_item("acme", fact) for fact in FACTS}
        answered, unread = keys[: self.each], keys[self.each :]
        responses = {table: [items[key["sk"]["S"]] for key in answered]}
        return {"Responses": responses, "UnprocessedKeys": {table: {"Keys": unread}} if unread else {}}


def test_what_is_left_unread_is_read_by_the_next_call() -> None:
    client, pauses = Client(2), list[float]()
    store = DynamoStore(client, "t", "acme", sleep=pauses.append)
    assert store.get_all(Fact, [fact.id for fact in FACTS]) == FACTS
    assert (client.calls, len(pauses)) == ([5, 3, 1], 2)


def test_a_table_that_reads_nothing_is_given_up() -> None:
    store = DynamoStore(Client(0), "t", "acme", sleep=lambda _: None)
    with pytest.raises(StoreUnavailable):
        store.get_all(Fact, ["f-1"])
