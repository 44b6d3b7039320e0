"""Direct calls to moto's table give the same answers and errors as calls over HTTP."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from local.aws.accounts import OWN_ACCOUNT
from local.aws.corrections.tables import atomic_tables
from local.testing import direct_table
from tests.harness.worlds.inprocess import credentials

TABLE = "records"
Ask = Callable[..., Any]


@pytest.fixture
def client() -> Iterator[Any]:
    with mock_aws(), atomic_tables(), credentials(OWN_ACCOUNT):
        dynamodb: Any = boto3.client("dynamodb")
        dynamodb.create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "due")],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": "due",
                    "KeySchema": [
                        {"AttributeName": "pk", "KeyType": "HASH"},
                        {"AttributeName": "due", "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        )
        yield dynamodb


def item(sk: str, n: int = 1, **more: Any) -> dict[str, Any]:
    return {"pk": {"S": "p"}, "sk": {"S": sk}, "n": {"N": str(n)}, **more}


def key(sk: str) -> dict[str, Any]:
    return {"pk": {"S": "p"}, "sk": {"S": sk}}


STEPS: list[tuple[str, dict[str, Any]]] = [
    ("PutItem", {"TableName": TABLE, "Item": item("a", 1, deep={"M": {"x": {"L": [{"S": "y"}, {"BOOL": True}]}}})}),
    (
        "PutItem",
        {"TableName": TABLE, "Item": item("b", 2, due={"S": "2026"}, set={"SS": ["q"]}, nothing={"NULL": True})},
    ),
    ("PutItem", {"TableName": TABLE, "Item": item("a", 9), "ConditionExpression": "attribute_not_exists(pk)"}),
    ("PutItem", {"TableName": TABLE, "Item": {"pk": {"S": "p"}}}),
    ("PutItem", {"TableName": "another", "Item": item("a")}),
    ("GetItem", {"TableName": TABLE, "Key": key("a"), "ConsistentRead": True}),
    ("GetItem", {"TableName": TABLE, "Key": key("none")}),
    ("BatchGetItem", {"RequestItems": {TABLE: {"Keys": [key("none"), key("a")], "ConsistentRead": True}}}),
    (
        "UpdateItem",
        {
            "TableName": TABLE,
            "Key": key("a"),
            "UpdateExpression": "ADD #n :one",
            "ConditionExpression": "#n < :limit",
            "ExpressionAttributeNames": {"#n": "n"},
            "ExpressionAttributeValues": {":one": {"N": "1"}, ":limit": {"N": "2"}},
            "ReturnValues": "ALL_NEW",
        },
    ),
    (
        "TransactWriteItems",
        {
            "TransactItems": [
                {"Put": {"TableName": TABLE, "Item": item("c", 3), "ConditionExpression": "attribute_not_exists(pk)"}},
                {"Put": {"TableName": TABLE, "Item": item("a", 3), "ConditionExpression": "attribute_not_exists(pk)"}},
            ]
        },
    ),
    (
        "TransactWriteItems",
        {
            "TransactItems": [
                {"Put": {"TableName": TABLE, "Item": item("c", 3)}},
                {"Delete": {"TableName": TABLE, "Key": key("b")}},
            ],
            "ClientRequestToken": "once",
        },
    ),
    (
        "Query",
        {
            "TableName": TABLE,
            "KeyConditionExpression": "pk = :p AND begins_with(sk, :s)",
            "ExpressionAttributeValues": {":p": {"S": "p"}, ":s": {"S": ""}},
        },
    ),
    (
        "Query",
        {
            "TableName": TABLE,
            "KeyConditionExpression": "pk = :p",
            "FilterExpression": "n > :n",
            "ExpressionAttributeValues": {":p": {"S": "p"}, ":n": {"N": "2"}},
            "Limit": 1,
        },
    ),
    (
        "Query",
        {
            "TableName": TABLE,
            "IndexName": "due",
            "KeyConditionExpression": "pk = :p AND due < :d",
            "ExpressionAttributeValues": {":p": {"S": "p"}, ":d": {"S": "3000"}},
        },
    ),
    ("Query", {"TableName": TABLE, "IndexName": "none", "KeyConditionExpression": "pk = :p"}),
]


def over_http(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
    names = {name: method for method, name in client.meta.method_to_api_mapping.items()}
    return getattr(client, names[operation])(**parameters)


def directly(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
    return direct_table.answer(client, operation, parameters, OWN_ACCOUNT)


def outcome_of(client: Any, ask: Ask, operation: str, parameters: dict[str, Any]) -> Any:
    try:
        answer = ask(client, operation, copy.deepcopy(parameters))
    except ClientError as refused:
        body = refused.response
        reasons: Any = [reason.get("Code") for reason in body.get("CancellationReasons", ())]
        return type(refused).__name__, body["Error"]["Code"], reasons
    return {
        name: value
        for name, value in answer.items()
        if name in ("Item", "Items", "Attributes", "LastEvaluatedKey", "Responses")
    }


@pytest.mark.parametrize("lean", [False, True], ids=["as it is", "lean"])
def test_direct_calls_give_the_same_answers_as_http(client: Any, lean: bool) -> None:
    with ExitStack() as stack:
        if lean:
            stack.enter_context(direct_table.lean())
        short = [outcome_of(client, directly, *step) for step in STEPS]
    for sk in ("a", "b", "c"):
        client.delete_item(TableName=TABLE, Key=key(sk))
    long = [
        outcome_of(
            client, over_http, operation, {**parameters, **({"ClientRequestToken": "two"} if number == 10 else {})}
        )
        for number, (operation, parameters) in enumerate(STEPS)
    ]
    assert short == long
    assert {operation for operation, _ in STEPS} == direct_table.ACTIONS.keys()
    # The steps do what they are there for: refusals of three kinds, and pages.
    assert {answer[1] for answer in long if isinstance(answer, tuple)} >= {
        "ConditionalCheckFailedException",
        "TransactionCanceledException",
        "ResourceNotFoundException",
        "ValidationException",
    }
    assert any("LastEvaluatedKey" in answer for answer in long if isinstance(answer, dict))


def test_changing_an_answer_does_not_change_the_table(client: Any) -> None:
    with direct_table.lean():
        original = item("a", 1, deep={"M": {"x": {"L": [{"S": "y"}]}}})
        directly(client, "PutItem", {"TableName": TABLE, "Item": original})
        original["deep"]["M"]["x"]["L"][0]["S"] = "changed"
        query = {
            "TableName": TABLE,
            "KeyConditionExpression": "pk = :p",
            "ExpressionAttributeValues": {":p": {"S": "p"}},
        }
        for _ in range(2):
            for read_item in (
                directly(client, "GetItem", {"TableName": TABLE, "Key": key("a")})["Item"],
                directly(client, "Query", query)["Items"][0],
            ):
                assert read_item["deep"] == {"M": {"x": {"L": [{"S": "y"}]}}}
                read_item["deep"]["M"]["x"]["L"].append({"S": "more"})
                read_item["n"]["N"] = "7"
        assert directly(client, "GetItem", {"TableName": TABLE, "Key": key("a")})["Item"]["n"] == {"N": "1"}


def test_a_refused_transaction_does_not_change_lean_tables(client: Any) -> None:
    with direct_table.lean():
        directly(client, "PutItem", {"TableName": TABLE, "Item": item("a", 1)})
        add = {
            "TableName": TABLE,
            "Key": key("a"),
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
        refused = {"TableName": TABLE, "Item": item("b"), "ConditionExpression": "attribute_exists(pk)"}
        with pytest.raises(ClientError):
            directly(client, "TransactWriteItems", {"TransactItems": [{"Update": add}, {"Put": refused}]})
        assert directly(client, "GetItem", {"TableName": TABLE, "Key": key("a")})["Item"] == item("a", 1)


def test_only_lean_tables_accept_items_of_any_size(client: Any) -> None:
    """Remove ``lean`` when this test fails, because moto then counts sizes differently."""
    large = {"TableName": TABLE, "Item": item("a", text={"S": "x" * 500_000})}
    with pytest.raises(ClientError):
        directly(client, "PutItem", large)
    with direct_table.lean():
        directly(client, "PutItem", large)
