"""moto's DynamoDB without HTTP between: the same parameters, conditions and errors, many times faster.

For tests that make thousands of calls. ``answer`` takes the place of a boto3 client's call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.core.exceptions import JsonRESTError
from moto.dynamodb.models.dynamo_type import Item
from moto.dynamodb.responses import DynamoHandler

from local.corrections.quick_tables import quick_tables

ACTIONS: Mapping[str, str] = {
    "GetItem": "get_item",
    "PutItem": "put_item",
    "Query": "query",
    "TransactWriteItems": "transact_write_items",
    "UpdateItem": "update_item",
}


def answer(client: Any, operation: str, parameters: Mapping[str, Any], account: str) -> Any:
    """What DynamoDB of ``account`` answers to ``client``. ``operation`` is one of ``ACTIONS``."""
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


@contextmanager
def lean() -> Iterator[None]:
    """``quick_tables``, and without the counting of bytes: an item may be of any size, a page ends at its ``Limit``."""
    with quick_tables(), patch.object(Item, "size", lambda _: 0):
        yield
