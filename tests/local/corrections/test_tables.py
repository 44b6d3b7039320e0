"""Transactions are atomic under threads, idempotent by token, and leave no trace in the stream when cancelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.dynamodb.models import dynamodb_backends

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections.tables import atomic_tables
from tests.harness.worlds.inprocess import credentials

Table = Any


@pytest.fixture
def world() -> Iterator[Callable[[bool], Table]]:
    with ExitStack() as stack:

        def make(corrected: bool) -> Table:
            stack.enter_context(mock_aws())
            stack.enter_context(atomic_tables() if corrected else nullcontext())
            stack.enter_context(credentials(OWN_ACCOUNT))
            client: Any = boto3.client("dynamodb", region_name=REGION, config=Config(max_pool_connections=20))
            keys = [("pk", "HASH"), ("sk", "RANGE")]
            client.create_table(
                TableName="t",
                AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
                KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
                BillingMode="PAY_PER_REQUEST",
                StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
            )
            return client

        yield make


def key(name: str) -> dict[str, Any]:
    return {"pk": {"S": "p"}, "sk": {"S": name}}


def take_slot(client: Table, racer: int, slots: int) -> bool:
    """One transaction of a race: adds 1 to a counter that must not exceed ``places``, and writes its own row."""
    try:
        client.transact_write_items(
            TransactItems=[
                {
                    "Update": {
                        "TableName": "t",
                        "Key": key("counter"),
                        "UpdateExpression": "ADD taken :one",
                        "ConditionExpression": "attribute_not_exists(taken) OR taken < :places",
                        "ExpressionAttributeValues": {":one": {"N": "1"}, ":places": {"N": str(slots)}},
                    }
                },
                {"Put": {"TableName": "t", "Item": key(f"racer-{racer}")}},
            ]
        )
    except client.exceptions.TransactionCanceledException:
        return False
    return True


def race(client: Table, racers: int, slots: int) -> tuple[int, int, int]:
    with ThreadPoolExecutor(16) as pool:
        winners = sum(pool.map(lambda n: take_slot(client, n, slots), range(racers)))
    counter = client.get_item(TableName="t", Key=key("counter"))["Item"]["taken"]["N"]
    rows = client.scan(TableName="t")["Count"] - 1
    return winners, int(counter), rows


def test_parallel_transactions_never_exceed_a_counter(world: Callable[[bool], Table]) -> None:
    assert race(world(True), 120, 10) == (10, 10, 10)


def test_a_cancelled_transaction_leaves_nothing_in_table_and_stream(world: Callable[[bool], Table]) -> None:
    client = world(True)
    client.put_item(TableName="t", Item=key("counter"))
    race(client, 12, 2)
    shard = dynamodb_backends[OWN_ACCOUNT][REGION].tables["t"].stream_shard
    assert len(shard.items) == 1 + 2 * 2
    assert [item.record["dynamodb"]["SequenceNumber"] for item in shard.items] == [
        str(shard.starting_sequence_number + n) for n in range(5)
    ]


def test_moto_still_keeps_stream_records_of_cancelled_transactions(world: Callable[[bool], Table]) -> None:
    """Remove the correction when this test fails."""
    client = world(False)
    client.put_item(TableName="t", Item=key("there"))
    shard = dynamodb_backends[OWN_ACCOUNT][REGION].tables["t"].stream_shard
    before = len(shard.items)
    put_of_existing = {"TableName": "t", "Item": key("there"), "ConditionExpression": "attribute_not_exists(pk)"}
    with pytest.raises(ClientError):
        client.transact_write_items(
            TransactItems=[{"Put": {"TableName": "t", "Item": key("new")}}, {"Put": put_of_existing}]
        )
    assert len(shard.items) > before or dynamodb_backends[OWN_ACCOUNT][REGION].tables["t"].stream_shard is not shard


def test_a_cancelled_transaction_changes_no_item(world: Callable[[bool], Table]) -> None:
    client = world(True)
    client.put_item(TableName="t", Item={**key("a"), "n": {"N": "1"}, "deep": {"M": {"x": {"L": [{"S": "y"}]}}}})
    before = client.get_item(TableName="t", Key=key("a"))["Item"]
    change = {
        "TableName": "t",
        "Key": key("a"),
        "UpdateExpression": "SET n = :two, deep.x = :two",
        "ExpressionAttributeValues": {":two": {"N": "2"}},
    }
    check = {"TableName": "t", "Key": key("none"), "ConditionExpression": "attribute_exists(pk)"}
    deletion = {"TableName": "t", "Key": key("b")}
    client.put_item(TableName="t", Item=key("b"))
    with pytest.raises(ClientError) as caught:
        client.transact_write_items(TransactItems=[{"Update": change}, {"Delete": deletion}, {"ConditionCheck": check}])
    reasons = [reason["Code"] for reason in caught.value.response["CancellationReasons"]]
    assert reasons == ["None", "None", "ConditionalCheckFailed"]
    assert client.get_item(TableName="t", Key=key("a"))["Item"] == before
    assert "Item" in client.get_item(TableName="t", Key=key("b"))


def test_a_client_token_makes_a_transaction_idempotent(world: Callable[[bool], Table]) -> None:
    client = world(True)

    def add(amount: str) -> None:
        update = {
            "TableName": "t",
            "Key": key("c"),
            "UpdateExpression": "ADD n :n",
            "ExpressionAttributeValues": {":n": {"N": amount}},
        }
        client.transact_write_items(TransactItems=[{"Update": update}], ClientRequestToken="once")

    add("5")
    add("5")
    assert client.get_item(TableName="t", Key=key("c"))["Item"]["n"]["N"] == "5"
    with pytest.raises(ClientError) as caught:
        add("6")
    assert caught.value.response["Error"]["Code"] == "IdempotentParameterMismatchException"


def test_a_backup_is_a_copy(world: Callable[[bool], Table]) -> None:
    client = world(True)
    client.put_item(TableName="t", Item=key("old"))
    arn = client.create_backup(TableName="t", BackupName="backup")["BackupDetails"]["BackupArn"]
    client.transact_write_items(TransactItems=[{"Put": {"TableName": "t", "Item": key("new")}}])
    client.restore_table_from_backup(TargetTableName="restored", BackupArn=arn)
    assert [item["sk"]["S"] for item in client.scan(TableName="restored")["Items"]] == ["old"]


def test_a_restored_table_has_another_id(world: Callable[[bool], Table]) -> None:
    client = world(True)
    first = client.describe_table(TableName="t")["Table"]["TableId"]
    assert client.describe_table(TableName="t")["Table"]["TableId"] == first
    arn = client.create_backup(TableName="t", BackupName="backup")["BackupDetails"]["BackupArn"]
    client.restore_table_from_backup(TargetTableName="restored", BackupArn=arn)
    assert client.describe_table(TableName="restored")["Table"]["TableId"] not in {"", first}
