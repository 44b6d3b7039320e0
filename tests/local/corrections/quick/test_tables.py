"""The quick table gives the same answers as moto without the correction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections.quick.server import quick_server
from local.aws.corrections.quick.tables import quick_tables
from local.aws.corrections.tables import atomic_tables
from tests.harness.worlds.inprocess import credentials

TABLE = "records"
NAMES = {"#pk": "pk", "#sk": "sk"}


@contextmanager
def table(quick: bool, *, served: bool = False) -> Iterator[Any]:
    with ExitStack() as stack:
        stack.enter_context(mock_aws() if not served else ExitStack())
        if quick:
            stack.enter_context(quick_server())
            stack.enter_context(quick_tables())
        stack.enter_context(atomic_tables())
        stack.enter_context(credentials(OWN_ACCOUNT))
        url = None
        if served:
            server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
            server.start()
            stack.callback(server.stop)
            url = "http://{}:{}".format(*server.get_host_and_port())
        client: Any = boto3.client("dynamodb", region_name=REGION, endpoint_url=url)
        client.create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in ("pk", "sk", "due_pk", "due_sk")],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": "due",
                    "KeySchema": [
                        {"AttributeName": "due_pk", "KeyType": "HASH"},
                        {"AttributeName": "due_sk", "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        )
        try:
            yield client
        finally:
            if served:
                client.delete_table(TableName=TABLE)
                client.close()


def item(partition: str, name: str, **more: Any) -> dict[str, Any]:
    nested = {"L": [{"M": {"a": {"S": name}, "b": {"N": "1.5"}, "c": {"NULL": True}}}, {"BOOL": False}]}
    return {"pk": {"S": partition}, "sk": {"S": name}, "version": {"N": "1"}, "nested": nested, **more}


def key(partition: str, name: str) -> dict[str, Any]:
    return {"pk": {"S": partition}, "sk": {"S": name}}


def story(client: Any) -> list[Any]:
    """Does every kind of write and read that the store does, and returns the results."""
    responses: list[Any] = []

    def ask(operation: str, **parameters: Any) -> None:
        try:
            answer = getattr(client, operation)(TableName=TABLE, **parameters)
        except ClientError as refused:
            answer = {k: v for k, v in refused.response.items() if k not in ("ResponseMetadata", "message")}
        responses.append({k: v for k, v in answer.items() if k != "ResponseMetadata"})

    def transact(*writes: dict[str, Any]) -> None:
        items = [
            {command: {"TableName": TABLE, **parameters}} for write in writes for command, parameters in write.items()
        ]
        try:
            client.transact_write_items(TransactItems=items)
            responses.append("written")
        except ClientError as refused:
            responses.append([reason.get("Code") for reason in refused.response["CancellationReasons"]])
            responses.append([reason.get("Item") for reason in refused.response["CancellationReasons"]])

    new = {"ConditionExpression": "attribute_not_exists(#pk)", "ExpressionAttributeNames": {"#pk": "pk"}}
    for partition in ("b", "a"):
        for number in (3, 1, 2, 10):
            due = {"due_pk": {"S": "due"}, "due_sk": {"S": f"{number:02d}"}} if number != 2 else {}
            transact({"Put": {"Item": item(partition, f"k{number:02d}", **due), **new}})
    transact({"Put": {"Item": item("a", "other")}}, {"Put": {"Item": item("a", "k01"), **new}})
    unchanged = {"ConditionExpression": "#v = :v", "ExpressionAttributeNames": {"#v": "version"}}
    for version_read in ("1", "1", "2"):
        values = {
            "ExpressionAttributeValues": {":v": {"N": version_read}},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        transact({"Put": {"Item": {**item("a", "k01"), "version": {"N": "2"}}, **unchanged, **values}})
    adding = {"UpdateExpression": "ADD #v :one", "ExpressionAttributeNames": {"#v": "version"}}
    ask(
        "update_item",
        Key=key("c", "n"),
        **adding,
        ExpressionAttributeValues={":one": {"N": "1"}},
        ReturnValues="ALL_NEW",
    )
    ask("get_item", Key=key("a", "k01"), ConsistentRead=True)
    ask("get_item", Key=key("a", "absent"))
    for forward in (True, False):
        queries = {"ScanIndexForward": forward, "ExpressionAttributeNames": {"#pk": "pk"}}
        of = {"ExpressionAttributeValues": {":pk": {"S": "a"}}}
        ask("query", KeyConditionExpression="#pk = :pk", **queries, **of)
        ask("query", KeyConditionExpression="#pk = :pk", **queries, **of, Limit=2)
        ask("query", KeyConditionExpression="#pk = :pk", **queries, **of, Limit=2, ExclusiveStartKey=key("a", "k02"))
    for condition in ("begins_with(#sk, :x)", "#sk > :x", "#sk <= :x"):
        values = {":pk": {"S": "a"}, ":x": {"S": "k0"}}
        ask(
            "query",
            KeyConditionExpression=f"#pk = :pk AND {condition}",
            ExpressionAttributeNames=NAMES,
            ExpressionAttributeValues=values,
            ConsistentRead=True,
        )
    ask(
        "query",
        IndexName="due",
        KeyConditionExpression="#p = :p AND #s < :s",
        ExpressionAttributeNames={"#p": "due_pk", "#s": "due_sk"},
        ExpressionAttributeValues={":p": {"S": "due"}, ":s": {"S": "10"}},
    )
    for change, values in (("SET #p = :q, #s = :s", {":q": {"S": "later"}, ":s": {"S": "x"}}), ("REMOVE #p", None)):
        names = {"#p": "due_pk", **({"#s": "due_sk"} if values else {})}
        more = {"ExpressionAttributeValues": values} if values else {}
        ask("update_item", Key=key("a", "k03"), UpdateExpression=change, ExpressionAttributeNames=names, **more)
        for partition in ("due", "later", "never"):
            ask(
                "query",
                IndexName="due",
                KeyConditionExpression="#p = :p",
                ExpressionAttributeNames={"#p": "due_pk"},
                ExpressionAttributeValues={":p": {"S": partition}},
            )
    ask(
        "query",
        KeyConditionExpression="#pk = :pk",
        FilterExpression="#v = :v",
        ExpressionAttributeNames={"#pk": "pk", "#v": "version"},
        ExpressionAttributeValues={":pk": {"S": "a"}, ":v": {"N": "2"}},
    )
    transact({"Delete": {"Key": key("a", "k02")}}, {"ConditionCheck": {"Key": key("a", "k01"), **new}})
    transact({"Delete": {"Key": key("a", "k02")}})
    transact({"Delete": {"Key": key("b", "k01")}}, {"Put": {"Item": item("a", "k01"), **new}})
    transact({"Delete": {"Key": key("b", "k03")}})
    ask(
        "query",
        IndexName="due",
        KeyConditionExpression="#p = :p",
        ExpressionAttributeNames={"#p": "due_pk"},
        ExpressionAttributeValues={":p": {"S": "due"}},
    )
    ask("scan")
    ask("put_item", Item={"pk": {"S": "a"}})
    return responses


@pytest.mark.parametrize("served", [False, True], ids=["in process", "by HTTP"])
def test_quick_tables_give_the_same_answers(served: bool) -> None:
    with table(quick=False) as client:
        expected = story(client)
    with table(quick=True, served=served) as client:
        assert story(client) == expected


def test_too_large_items_are_refused() -> None:
    large = item("a", "k", text={"S": "x" * 406_000})
    with table(quick=True) as client:
        with pytest.raises(ClientError, match="Item size"):
            client.put_item(TableName=TABLE, Item=large)
        client.put_item(TableName=TABLE, Item=item("a", "k", text={"S": "x" * 390_000}))


def test_a_reader_cannot_change_stored_items() -> None:
    with table(quick=True) as client:
        client.put_item(TableName=TABLE, Item=item("a", "k"))
        stored = client.get_item(TableName=TABLE, Key=key("a", "k"))["Item"]
        stored["nested"]["L"].clear()
        assert client.get_item(TableName=TABLE, Key=key("a", "k"))["Item"] == item("a", "k")


@pytest.mark.parametrize("quick", [False, True], ids=["plain", "quick"])
def test_bytes_are_read_back_unchanged(quick: bool) -> None:
    """The catalogue stores its sheets compressed."""
    packed = {"B": bytes(range(256))}
    with table(quick, served=True) as client:
        client.put_item(TableName=TABLE, Item=item("p", "alone", data=packed))
        member = {"Put": {"TableName": TABLE, "Item": item("p", "together", data=packed)}}
        client.transact_write_items(TransactItems=[member])
        parameters = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "p"}}}
        items = client.query(TableName=TABLE, **parameters)["Items"]
        items.extend(client.scan(TableName=TABLE)["Items"])
        items.extend(client.get_item(TableName=TABLE, Key=key("p", name))["Item"] for name in ("alone", "together"))
        assert [stored_item["data"] for stored_item in items] == [packed] * 6
