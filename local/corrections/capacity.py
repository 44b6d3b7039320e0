"""DynamoDB: the capacity that a call consumes, by the sizes of what it read and wrote.

moto answers a constant. Counted as AWS documents it: a write unit for each begun KB, two in a transaction, and one for
each entry that comes to or leaves an index; a read unit for each begun 4 KB, half of it when not consistent. A check
in a transaction is counted like a write of one KB.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import StreamShard
from moto.dynamodb.responses import DynamoHandler

READ, WRITTEN = 4096, 1024

_changes = threading.local()


@contextmanager
def counted_capacity() -> Iterator[None]:
    """While it is open, an answer to a call that asks for ``ReturnConsumedCapacity`` says what the call consumed.

    Of a table with a stream: there every write passes with what was before and what is now.
    """
    with ExitStack() as stack:
        stack.enter_context(patch.object(DynamoHandler, "call_action", _fresh(DynamoHandler.call_action)))
        stack.enter_context(patch.object(DynamoHandler, "serialized", _told(DynamoHandler.serialized)))
        stack.enter_context(patch.object(StreamShard, "add", _noted(StreamShard.add)))
        yield


def _fresh(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def call_action(handler: Any) -> Any:
        _changes.made = []
        return original(handler)

    return call_action


def _noted(original: Callable[..., None]) -> Callable[..., None]:
    def add(shard: Any, old: Any, new: Any) -> None:
        original(shard, old, new)
        if hasattr(_changes, "made"):
            _changes.made.append((shard.table, old, new))

    return add


def _told(original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def serialized(handler: Any, action_result: Any) -> Any:
        result, asked = action_result.result, handler.params
        if isinstance(result, dict) and asked.get("ReturnConsumedCapacity") == "TOTAL":
            result["ConsumedCapacity"] = _consumed(asked, result)
        return original(handler, action_result)

    return serialized


def _consumed(asked: Mapping[str, Any], result: Mapping[str, Any]) -> Any:
    if "TransactItems" in asked:
        checks = sum("ConditionCheck" in item for item in asked["TransactItems"])
        name = next(iter(asked["TransactItems"][0].values()))["TableName"]
        return [_units(name, 0.0, written(_changes.made, 2) + 2 * checks)]
    if _changes.made:
        return _units(asked["TableName"], 0.0, written(_changes.made, 1))
    items = result["Items"] if "Items" in result else [result.get("Item") or {}]
    units = max(1, math.ceil(sum(_size(item) for item in items) / READ))
    return _units(asked["TableName"], units * (1.0 if asked.get("ConsistentRead") else 0.5), 0.0)


def _units(table: str, read: float, write: float) -> dict[str, Any]:
    return {
        "TableName": table,
        "CapacityUnits": read + write,
        "ReadCapacityUnits": read,
        "WriteCapacityUnits": write,
    }


def _size(item: Mapping[str, Any]) -> int:
    return sum(len(name.encode()) + int(DynamoType(value).size()) for name, value in item.items())


def written(changes: Sequence[tuple[Any, Any, Any]], each: int) -> float:
    """Write units of changes (table, before, after); ``each`` is what a KB of the table itself costs."""
    return float(sum(each * _begun(old, new) + _entries(table, old, new) for table, old, new in changes))


def _begun(*items: Any) -> int:
    sizes = [int(item.size()) for item in items if item is not None]
    return max(1, math.ceil(max(sizes) / WRITTEN))


def _entries(table: Any, old: Any, new: Any) -> int:
    """Units of the indexes: an entry that moves is taken away and put; one that stays is put again when it changes."""
    units = 0
    for index in table.global_indexes or []:
        names = [key["AttributeName"] for key in index.schema]
        before, after = _key(old, names), _key(new, names)
        if before == after:
            units += _begun(old, new) if before is not None and old.attrs != new.attrs else 0
        else:
            units += (_begun(old) if before is not None else 0) + (_begun(new) if after is not None else 0)
    return units


def _key(item: Any, names: Sequence[str]) -> tuple[Any, ...] | None:
    if item is None or any(name not in item.attrs for name in names):
        return None
    return tuple(item.attrs[name].value for name in names)
