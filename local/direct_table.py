"""moto's DynamoDB without HTTP between: the same parameters, conditions and errors, many times faster.

For tests that make thousands of calls. ``answer`` takes the place of a boto3 client's call.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

from moto.core import responses
from moto.core.exceptions import JsonRESTError
from moto.core.utils import method_names_from_class
from moto.dynamodb.models.dynamo_type import Item, LimitedSizeDict
from moto.dynamodb.models.table import Table
from moto.dynamodb.responses import DynamoHandler

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
    """Without what costs moto most time and is not looked at here.

    The counting of bytes: an item may be of any size, and a page ends at its ``Limit`` only. The sorting of a whole
    table before a part of it is sorted. Copies of attributes, which are replaced and never changed. The search for the
    methods of a class at every call.
    """
    with ExitStack() as stack:
        stack.enter_context(patch.object(LimitedSizeDict, "__setitem__", dict.__setitem__))
        stack.enter_context(patch.object(Item, "size", lambda _: 0))
        stack.enter_context(patch.object(Item, "__deepcopy__", _copied))
        stack.enter_context(patch.object(Table, "all_items", _items))
        stack.enter_context(patch.object(responses, "method_names_from_class", cache(method_names_from_class)))
        yield


def _copied(item: Any, _memo: dict[int, Any]) -> Any:
    made = copy.copy(item)
    made.attrs = LimitedSizeDict(item.attrs)
    return made


def _items(table: Any) -> list[Any]:
    return [item for items in table.items.values() for item in items.values()]
