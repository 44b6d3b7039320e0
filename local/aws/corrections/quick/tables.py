"""A quicker DynamoDB: a query reads only its own partition, and answers are written without conversion.

The answers stay the same; a test compares both.
"""

from __future__ import annotations

import base64
import copy
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from moto.dynamodb import comparisons, models
from moto.dynamodb.exceptions import ItemSizeTooLarge
from moto.dynamodb.models import table as table_module
from moto.dynamodb.models.dynamo_type import DynamoType, Item, LimitedSizeDict
from moto.dynamodb.models.table import Table
from moto.dynamodb.responses import DynamoHandler

from local.aws.corrections.quick.indexed_items import candidates, indexing, looking_again

PLAIN = frozenset({"BatchGetItem", "GetItem", "PutItem", "Query", "Scan", "TransactWriteItems", "UpdateItem"})
"""Actions whose parameters and results are JSON already; no record of ours has a binary value."""
LARGEST = 405_000
"""The largest item in bytes, as moto counts them."""

CONDITIONS = 256
"""How many parsed conditions are kept."""

_own = threading.local()


@contextmanager
def quick_tables() -> Iterator[None]:
    """Inside this context the time of a call depends on the requested items, not on the size of the table."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(LimitedSizeDict, "__setitem__", dict.__setitem__))
        stack.enter_context(patch.object(Item, "__init__", _limited(Item.__init__)))
        stack.enter_context(patch.object(Item, "__deepcopy__", _copied))
        stack.enter_context(patch.object(Item, "to_json", _item_json))
        parsed = _parsed_once(comparisons.get_filter_expression)
        for module in (models, table_module):
            stack.enter_context(patch.object(module, "get_filter_expression", parsed))
        stack.enter_context(patch.object(Table, "__init__", indexing(Table.__init__)))
        updated = looking_again(models.DynamoDBBackend.update_item, DynamoType)
        stack.enter_context(patch.object(models.DynamoDBBackend, "update_item", updated))
        stack.enter_context(patch.object(Table, "query", _narrowed(Table.query)))
        stack.enter_context(patch.object(Table, "all_items", _candidates_or_all(Table.all_items)))
        stack.enter_context(patch.object(DynamoHandler, "serialized", _written_out(DynamoHandler.serialized)))
        parse = DynamoHandler.parse_parameters
        stack.enter_context(patch.object(DynamoHandler, "parse_parameters", _as_sent(parse)))
        yield


def table_answer(headers: Any, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
    """Status, headers and body of moto's answer to one of the plain actions, without a web framework."""
    handler: Any = DynamoHandler()
    handler.headers, handler.querystring = headers, {}
    handler.response_headers = {"server": "amazon.com"}
    handler.region = handler.get_region_from_url(SimpleNamespace(headers=headers), "")
    handler.params = json.loads(body)
    handler.access_key = handler.get_access_key()
    handler.current_account = handler.get_current_account()
    status, answered, text = handler.call_action()
    return int(status), answered, text.encode() if isinstance(text, str) else text


def _limited(original: Callable[..., None]) -> Callable[..., None]:
    """Computes the size of an item once. moto computes it again for each attribute that it sets."""

    def init(item: Any, hash_key: Any, range_key: Any, attrs: Mapping[str, Any]) -> None:
        original(item, hash_key, range_key, attrs)
        # The text is longer than the counted size.
        if len(json.dumps(attrs, default=str)) > LARGEST and item.size() > LARGEST:
            raise ItemSizeTooLarge

    return init


def _item_json(item: Any, root_attr_name: str = "Attributes") -> dict[str, Any]:
    # moto copies each attribute before it turns it into JSON.
    return {root_attr_name: {name: plain_value(value) for name, value in item.attrs.items()}}


def plain_value(value: Any) -> Any:
    """A value of moto as the JSON of DynamoDB; binary values have none."""
    if not isinstance(value, DynamoType):
        return value
    if value.type == "M":
        return {"M": {name: plain_value(element) for name, element in value.value.items()}}
    if value.type == "L":
        return {"L": [plain_value(element) for element in value.value]}
    return value.to_json()


def _parsed_once(original: Callable[..., Any]) -> Callable[..., Any]:
    """Keeps parsed conditions. moto parses each condition of a transaction three times."""

    @lru_cache(CONDITIONS)
    def parsed(expression: str | None, names: str, values: str) -> Any:
        return original(expression, json.loads(names), json.loads(values))

    def get_filter_expression(expression: Any, names: Any, values: Any) -> Any:
        return parsed(expression, json.dumps(names), json.dumps(values))

    return get_filter_expression


def _copied(item: Any, _memo: dict[int, Any]) -> Any:
    # An attribute is replaced, never changed: the copies may share it.
    copied = copy.copy(item)
    copied.attrs = LimitedSizeDict(item.attrs)
    return copied


def _narrowed(original: Callable[..., Any]) -> Callable[..., Any]:
    """Reads a query's partition directly. moto sorts the whole table first."""

    def query(table: Any, hash_key: Any, comparison: Any, objects: Any, *more: Any, **named: Any) -> Any:
        index_name = more[4] if len(more) > 4 else named.get("index_name")
        if index_name:
            _own.items = candidates(table.items, named["hash_key_conditions"])
        else:
            _own.items = _in_partition(table, hash_key, comparison, objects)
        try:
            return original(table, hash_key, comparison, objects, *more, **named)
        finally:
            _own.items = None

    return query


def _in_partition(table: Any, hash_key: Any, comparison: Any, objects: Any) -> list[Any]:
    items = list(table.items[hash_key].values()) if hash_key in table.items else []
    if comparison == "BEGINS_WITH" and table.range_key_type == "S":
        prefix = objects[0].value
        items = [item for item in items if item.range_key.value.startswith(prefix)]
    elif comparison:
        items = [item for item in items if item.range_key.compare(comparison, objects)]
    return sorted(items, key=lambda item: item.range_key.value) if table.range_key_type == "S" else items


def _candidates_or_all(original: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    def all_items(table: Any) -> list[Any]:
        items: list[Any] | None = getattr(_own, "items", None)
        return original(table) if items is None else items

    return all_items


def _written_out(original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Skips the service's model. moto looks up every attribute of every item in it, under several names."""

    def serialized(handler: Any, action_result: Any) -> Any:
        result = action_result.result
        if handler._get_action() not in PLAIN or not isinstance(result, dict):
            return original(handler, action_result)
        headers = {"Content-Type": handler.headers.get("Content-Type", "application/x-amz-json-1.0")}
        return 200, {**headers, **handler.response_headers}, json.dumps(result, default=_attribute)

    return serialized


def _attribute(value: Any) -> Any:
    if isinstance(value, DynamoType):
        return value.to_json()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"DynamoDB does not answer a {type(value).__name__}")


def _as_sent(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def parse_parameters(handler: Any, request: Any) -> None:
        if handler._get_action() in PLAIN:
            handler.params = json.loads(request.data)
        else:
            original(handler, request)

    return parse_parameters
