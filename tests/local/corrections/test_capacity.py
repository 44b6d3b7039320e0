"""The capacity units that a call consumes, by the sizes of its reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections.capacity import counted_capacity
from local.aws.corrections.quick.tables import quick_tables
from local.aws.corrections.tables import atomic_tables
from tests.harness.worlds.inprocess import credentials

CAPACITY_REQUESTED = {"ReturnConsumedCapacity": "TOTAL"}


@pytest.fixture
def client() -> Iterator[Any]:
    with ExitStack() as stack:
        for part in (mock_aws(), quick_tables(), counted_capacity(), atomic_tables(), credentials(OWN_ACCOUNT)):
            stack.enter_context(part)
        dynamodb: Any = boto3.client("dynamodb", region_name=REGION)
        dynamodb.create_table(
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
        yield dynamodb


def item(name: str, size: int = 1, **more: Any) -> dict[str, Any]:
    return {"pk": {"S": "p"}, "sk": {"S": name}, "text": {"S": "x" * size}, **more}


def written(client: Any, *writes: dict[str, Any]) -> float:
    items = [{command: {"TableName": "t", **parameters}} for write in writes for command, parameters in write.items()]
    consumed = client.transact_write_items(TransactItems=items, **CAPACITY_REQUESTED)["ConsumedCapacity"]
    assert [table_capacity["ReadCapacityUnits"] for table_capacity in consumed] == [0.0]
    return float(consumed[0]["WriteCapacityUnits"])


def test_a_transaction_costs_two_units_a_kb_and_one_for_each_index_change(client: Any) -> None:
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


def test_a_read_costs_one_unit_for_4_kb_and_half_when_not_consistent(client: Any) -> None:
    for number in range(3):
        written(client, {"Put": {"Item": item(f"k{number}", 3000)}})
    response = client.get_item(
        TableName="t", Key={"pk": {"S": "p"}, "sk": {"S": "k0"}}, ConsistentRead=True, **CAPACITY_REQUESTED
    )
    assert response["ConsumedCapacity"]["ReadCapacityUnits"] == 1
    query = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "p"}}}
    for consistent, units in ((True, 3), (False, 1.5)):
        answer = client.query(TableName="t", ConsistentRead=consistent, **query, **CAPACITY_REQUESTED)
        assert answer["ConsumedCapacity"]["ReadCapacityUnits"] == units
    absent = client.get_item(TableName="t", Key={"pk": {"S": "p"}, "sk": {"S": "none"}}, **CAPACITY_REQUESTED)
    assert absent["ConsumedCapacity"]["ReadCapacityUnits"] == 0.5
    assert "ConsumedCapacity" not in client.query(TableName="t", **query)


def test_each_record_of_a_batch_is_rounded_up_by_itself(client: Any) -> None:
    for name, size in (("a", 100), ("b", 5000)):
        client.put_item(TableName="t", Item=item(name, size))
    keys = [{"pk": {"S": "p"}, "sk": {"S": name}} for name in ("a", "b", "none")]

    def units(**options: Any) -> float:
        answer = client.batch_get_item(RequestItems={"t": {"Keys": keys, **options}}, **CAPACITY_REQUESTED)
        return float(answer["ConsumedCapacity"][0]["ReadCapacityUnits"])

    assert (units(ConsistentRead=True), units()) == (4.0, 2.0)
