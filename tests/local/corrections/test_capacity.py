"""The units that a call consumes, by what it read and wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from local.corrections.capacity import counted_capacity
from local.corrections.quick_tables import quick_tables
from local.corrections.tables import atomic_tables
from local.inprocess import OWN_ACCOUNT, REGION, credentials

ASKED = {"ReturnConsumedCapacity": "TOTAL"}


@pytest.fixture
def client() -> Iterator[Any]:
    with ExitStack() as stack:
        for part in (mock_aws(), quick_tables(), counted_capacity(), atomic_tables(), credentials(OWN_ACCOUNT)):
            stack.enter_context(part)
        made: Any = boto3.client("dynamodb", region_name=REGION)
        made.create_table(
            TableName="t",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "due")],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": "due",
                    "KeySchema": [{"AttributeName": "due", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        )
        yield made


def item(name: str, size: int = 1, **more: Any) -> dict[str, Any]:
    return {"pk": {"S": "p"}, "sk": {"S": name}, "text": {"S": "x" * size}, **more}


def written(client: Any, *writes: dict[str, Any]) -> float:
    items = [{deed: {"TableName": "t", **given}} for write in writes for deed, given in write.items()]
    consumed = client.transact_write_items(TransactItems=items, **ASKED)["ConsumedCapacity"]
    assert [one["ReadCapacityUnits"] for one in consumed] == [0.0]
    return float(consumed[0]["WriteCapacityUnits"])


def test_a_transaction_costs_two_a_kb_and_one_for_each_move_in_an_index(client: Any) -> None:
    assert written(client, {"Put": {"Item": item("a")}}) == 2
    assert written(client, {"Put": {"Item": item("b", 1500)}}) == 4
    assert written(client, {"Put": {"Item": item("b")}}) == 4, "what was there before counts too"
    due = item("a", due={"S": "1"})
    assert written(client, {"Put": {"Item": due}}) == 3
    assert written(client, {"Put": {"Item": due}}) == 2, "the entry of the index stays as it is"
    assert written(client, {"Put": {"Item": item("a", due={"S": "2"})}}) == 4
    assert written(client, {"Put": {"Item": item("a", 2, due={"S": "2"})}}) == 3
    there = {"Key": {k: due[k] for k in ("pk", "sk")}}
    check = {"ConditionExpression": "attribute_exists(#pk)", "ExpressionAttributeNames": {"#pk": "pk"}}
    assert written(client, {"Put": {"Item": item("c")}}, {"ConditionCheck": {**there, **check}}) == 4
    assert written(client, {"Delete": there}) == 3


def test_a_cancelled_transaction_is_not_charged_to_the_next(client: Any) -> None:
    new = {"ConditionExpression": "attribute_not_exists(#pk)", "ExpressionAttributeNames": {"#pk": "pk"}}
    written(client, {"Put": {"Item": item("a")}})
    with pytest.raises(ClientError):
        written(client, {"Put": {"Item": item("b")}}, {"Put": {"Item": item("a"), **new}})
    assert written(client, {"Put": {"Item": item("c")}}) == 2


def test_reads_cost_one_for_4_kb_and_half_when_not_consistent(client: Any) -> None:
    for number in range(3):
        written(client, {"Put": {"Item": item(f"k{number}", 3000)}})
    found = client.get_item(TableName="t", Key={"pk": {"S": "p"}, "sk": {"S": "k0"}}, ConsistentRead=True, **ASKED)
    assert found["ConsumedCapacity"]["ReadCapacityUnits"] == 1
    query = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "p"}}}
    for consistent, units in ((True, 3), (False, 1.5)):
        answer = client.query(TableName="t", ConsistentRead=consistent, **query, **ASKED)
        assert answer["ConsumedCapacity"]["ReadCapacityUnits"] == units
    absent = client.get_item(TableName="t", Key={"pk": {"S": "p"}, "sk": {"S": "none"}}, **ASKED)
    assert absent["ConsumedCapacity"]["ReadCapacityUnits"] == 0.5
    assert "ConsumedCapacity" not in client.query(TableName="t", **query)
