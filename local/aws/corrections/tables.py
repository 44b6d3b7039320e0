"""DynamoDB: transactions are atomic, idempotent by token, and leave no stream records when cancelled; tables have an
id."""

from __future__ import annotations

import copy
import hashlib
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from moto.core.responses import ActionResult
from moto.dynamodb.exceptions import DynamodbException
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import Table
from moto.dynamodb.responses import DynamoHandler
from moto.dynamodbstreams.responses import DynamoDBStreamsHandler

Tokens = dict[tuple[str, str, str], tuple[float, str]]
"""By account, region and token of a transaction: when it was written, and the digest of what it wrote."""
TOKEN_SECONDS = 600.0
"""How long AWS remembers the token of a transaction."""


class IdempotentParameterMismatch(DynamodbException):  # type: ignore[misc]
    """A client token was used again with other parameters."""

    def __init__(self) -> None:
        super().__init__(
            "com.amazonaws.dynamodb.v20120810#IdempotentParameterMismatchException",
            "Request parameters do not match the ones of the first request with this token",
        )


@contextmanager
def atomic_tables() -> Iterator[AbstractContextManager[bool]]:
    """One lock over tables and streams; a cancelled transaction is undone item by item and leaves no stream record.

    moto copies the whole table for each transaction and swaps it back on failure, which loses what others wrote
    meanwhile, takes time in proportion to the table, and keeps the stream records. Yields the lock.
    """
    lock = threading.RLock()
    tokens: Tokens = {}
    with ExitStack() as stack:
        for handler in (DynamoHandler, DynamoDBStreamsHandler):
            stack.enter_context(patch.object(handler, "call_action", _locked(handler.call_action, lock)))
        stack.enter_context(
            patch.object(DynamoDBBackend, "transact_write_items", _undoing(DynamoDBBackend.transact_write_items))
        )
        stack.enter_context(
            patch.object(DynamoHandler, "transact_write_items", _idempotent(DynamoHandler.transact_write_items, tokens))
        )
        stack.enter_context(patch.object(Table, "describe", _identified(Table.describe)))
        yield lock


def _identified(original: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """The description with ``TableId``. By it the sweep recognizes a restored table."""

    def describe(table: Table, base_key: str = "TableDescription") -> dict[str, Any]:
        answer = original(table, base_key)
        answer[base_key]["TableId"] = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{table.table_arn} {table.created_at}"))
        return answer

    return describe


def _shared(table: Table, _memo: dict[int, Any]) -> Table:
    return table


def _locked(original: Callable[[Any], Any], lock: AbstractContextManager[bool]) -> Callable[[Any], Any]:
    def call_action(handler: Any) -> Any:
        with lock:
            return original(handler)

    return call_action


def _undoing(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def transact_write_items(backend: Any, transact_items: Sequence[Mapping[str, Any]]) -> None:
        before = [_snapshot(backend, *next(iter(item.items()))) for item in transact_items]
        lengths = {id(table): (table, len(table.stream_shard.items)) for table, *_ in before if table.stream_shard}
        try:
            with patch.object(Table, "__deepcopy__", _shared, create=True):
                original(backend, transact_items)
        except Exception:
            for table, hash_key, range_key, item in before:
                _restore(table, hash_key, range_key, item)
            for table, length in lengths.values():
                del table.stream_shard.items[length:]
            raise

    return transact_write_items


def _snapshot(backend: Any, kind: str, operation: Mapping[str, Any]) -> tuple[Any, Any, Any, Any]:
    table = backend.get_table(operation["TableName"])
    source = operation["Item"] if kind == "Put" else operation["Key"]
    hash_key = DynamoType(source[table.hash_key_attr])
    range_key = DynamoType(source[table.range_key_attr]) if table.has_range_key else None
    return table, hash_key, range_key, copy.deepcopy(table.get_item(hash_key, range_key))


def _restore(table: Any, hash_key: Any, range_key: Any, item: Any) -> None:
    rows, key = (table.items[hash_key], range_key) if table.has_range_key else (table.items, hash_key)
    if item is None:
        rows.pop(key, None)
    else:
        rows[key] = item


def _idempotent(original: Callable[[Any], Any], tokens: Tokens) -> Callable[[Any], Any]:
    def transact_write_items(handler: Any) -> Any:
        token = handler.body.get("ClientRequestToken")
        if not token:
            return original(handler)
        text = json.dumps(handler.body["TransactItems"], sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()
        key = (handler.current_account, handler.region, token)
        now = time.monotonic()
        while tokens and next(iter(tokens.values()))[0] < now - TOKEN_SECONDS:
            del tokens[next(iter(tokens))]
        if key in tokens:
            if tokens[key][1] != digest:
                raise IdempotentParameterMismatch
            return ActionResult({"ConsumedCapacity": [], "ItemCollectionMetrics": {}})
        answer = original(handler)
        tokens[key] = (now, digest)
        return answer

    return transact_write_items
