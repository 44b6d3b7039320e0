"""Items that nobody has used for a while are packed, and nobody sees it."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.dynamodb.models import dynamodb_backends

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections.quick import packed_items as module
from local.aws.corrections.quick.packed_items import packed_items
from local.aws.corrections.quick.tables import quick_tables
from tests.harness.worlds.inprocess import credentials

ITEM: dict[str, Any] = {
    "text": {"S": "ä" * 50},
    "number": {"N": "1.50"},
    "yes": {"BOOL": True},
    "nothing": {"NULL": True},
    "words": {"SS": ["a", "b"]},
    "list": {"L": [{"S": "x"}, {"M": {"deep": {"L": [{"N": "1"}]}}}]},
}


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(module, "LATELY_USED", 5)
    with mock_aws(), credentials(OWN_ACCOUNT), quick_tables(), packed_items():
        client: Any = boto3.client("dynamodb", REGION)
        client.create_table(
            TableName="t",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        )
        for number in range(40):
            client.put_item(TableName="t", Item={"pk": {"S": "p"}, "sk": {"S": f"{number:02}"}, **ITEM})
        yield client


def packed_count() -> int:
    items = dynamodb_backends[OWN_ACCOUNT][REGION].tables["t"].items
    rows = next(iter(items.values()))
    return sum(isinstance(item.__dict__["attrs"], bytes) for item in rows.values())


def test_all_but_the_items_used_last_are_packed(table: Any) -> None:
    assert packed_count() == 35


def test_a_packed_item_is_read_and_found_as_it_was(table: Any) -> None:
    key = {"pk": {"S": "p"}, "sk": {"S": "03"}}
    assert table.get_item(TableName="t", Key=key)["Item"] == {**key, **ITEM}
    pages = table.query(
        TableName="t",
        KeyConditionExpression="pk = :p AND sk > :s",
        FilterExpression="#n = :n",
        ExpressionAttributeNames={"#n": "number"},
        ExpressionAttributeValues={":p": {"S": "p"}, ":s": {"S": "09"}, ":n": {"N": "1.5"}},
    )
    assert [item["sk"]["S"] for item in pages["Items"]] == [f"{number:02}" for number in range(10, 40)]
    assert packed_count() >= 35


def test_an_item_with_a_binary_value_stays_as_it_is(table: Any) -> None:
    key = {"pk": {"S": "p"}, "sk": {"S": "binary"}}
    table.put_item(TableName="t", Item={**key, "bytes": {"B": b"\x00\xff"}})
    for number in range(10, 30):
        table.get_item(TableName="t", Key={"pk": {"S": "p"}, "sk": {"S": f"{number}"}})
    assert table.get_item(TableName="t", Key=key)["Item"]["bytes"] == {"B": b"\x00\xff"}


def test_what_was_changed_without_a_copy_is_still_changed_after_packing(table: Any) -> None:
    key = {"pk": {"S": "p"}, "sk": {"S": "03"}}
    change: dict[str, Any] = {"UpdateExpression": "SET #t = :v REMOVE yes", "ExpressionAttributeNames": {"#t": "text"}}
    table.update_item(TableName="t", Key=key, **change, ExpressionAttributeValues={":v": {"S": "new"}})
    for number in range(10, 30):
        table.get_item(TableName="t", Key={"pk": {"S": "p"}, "sk": {"S": f"{number}"}})
    rows = next(iter(dynamodb_backends[OWN_ACCOUNT][REGION].tables["t"].items.values()))
    assert [isinstance(item.__dict__["attrs"], bytes) for item in rows.values() if item.range_key.value == "03"] == [
        True
    ]
    item = table.get_item(TableName="t", Key=key)["Item"]
    assert (item["text"], "yes" in item, item["number"]) == ({"S": "new"}, False, {"N": "1.50"})
