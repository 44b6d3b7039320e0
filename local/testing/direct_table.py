"""Direct calls to moto's DynamoDB without HTTP: the same parameters, conditions and errors, many times faster.

For tests that make thousands of calls. ``answer`` replaces the call of a boto3 client.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import boto3
from moto.core.exceptions import JsonRESTError
from moto.dynamodb.models.dynamo_type import Item
from moto.dynamodb.responses import DynamoHandler

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections.quick.tables import quick_tables

ACTIONS: Mapping[str, str] = {
    "BatchGetItem": "batch_get_item",
    "GetItem": "get_item",
    "PutItem": "put_item",
    "Query": "query",
    "TransactWriteItems": "transact_write_items",
    "UpdateItem": "update_item",
}


def answer(client: Any, operation: str, parameters: Mapping[str, Any], account: str) -> Any:
    """The answer of ``account``'s DynamoDB to ``client``. ``operation`` is one of ``ACTIONS``."""
    handler: Any = DynamoHandler()
    handler.region, handler.current_account = client.meta.region_name, account
    handler.body = handler.params = dict(parameters)
    try:
        result = getattr(handler, ACTIONS[operation])().result
    except JsonRESTError as refused:
        body = json.loads(refused.description)
        code = str(body.pop("__type", refused.error_type)).rpartition("#")[2]
        message = body.pop("Message", None) or body.pop("message", "")
        response = {**body, "Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": 400}}
        raise client.exceptions.from_code(code)(response, operation) from None
    return result


def intercepted(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
    """``answer`` of the product's own account."""
    return answer(client, operation, parameters, OWN_ACCOUNT)


def described(_client: Any, _operation: str, parameters: Mapping[str, Any]) -> Any:
    """The answer to ``DescribeTable``, with the id by which a restored table is told apart; moto has none."""
    return {"Table": {"TableName": parameters["TableName"], "TableId": "first"}}


def make(name: str) -> None:
    """Make the product's table with its keys, indexes and stream."""
    attributes = ("pk", "sk", "due_pk", "due_sk", "all_pk", "all_sk")

    def schema(stem: str) -> list[dict[str, str]]:
        return [
            {"AttributeName": f"{stem}pk", "KeyType": "HASH"},
            {"AttributeName": f"{stem}sk", "KeyType": "RANGE"},
        ]

    def index(name: str, stem: str) -> dict[str, Any]:
        return {"IndexName": name, "KeySchema": schema(stem), "Projection": {"ProjectionType": "ALL"}}

    client: Callable[..., Any] = boto3.client
    client("dynamodb", region_name=REGION).create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=schema(""),
        AttributeDefinitions=[{"AttributeName": attribute, "AttributeType": "S"} for attribute in attributes],
        GlobalSecondaryIndexes=[index("due", "due_"), index("everything", "all_")],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )


@contextmanager
def lean() -> Iterator[None]:
    """``quick_tables`` without counting bytes: an item may have any size, and a page ends only at its ``Limit``."""
    with quick_tables(), patch.object(Item, "size", lambda _: 0):
        yield
