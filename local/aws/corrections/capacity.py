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
    """Inside this context the answer to a call with ``ReturnConsumedCapacity`` has the units that the call consumed.

    It works for tables with a stream, where every write has the item before and after.
    """
    with ExitStack() as stack:
        stack.enter_context(patch.object(DynamoHandler, "call_action", _fresh(DynamoHandler.call_action)))
        stack.enter_context(
            patch.object(DynamoHandler, "serialized", _with_consumed_capacity(DynamoHandler.serialized))
        )
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


def _with_consumed_capacity(original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def serialized(handler: Any, action_result: Any) -> Any:
        result, parameters = action_result.result, handler.params
        if isinstance(result, dict) and parameters.get("ReturnConsumedCapacity") == "TOTAL":
            result["ConsumedCapacity"] = _consumed(parameters, result)
        return original(handler, action_result)

    return serialized


def _consumed(parameters: Mapping[str, Any], result: Mapping[str, Any]) -> Any:
    if "TransactItems" in parameters:
        checks = sum("ConditionCheck" in item for item in parameters["TransactItems"])
        name = next(iter(parameters["TransactItems"][0].values()))["TableName"]
        return [_units(name, 0.0, written(_changes.made, 2) + 2 * checks)]
    if "RequestItems" in parameters:
        return [_batch_units(name, request, result) for name, request in parameters["RequestItems"].items()]
    if _changes.made:
        return _units(parameters["TableName"], 0.0, written(_changes.made, 1))
    items = result["Items"] if "Items" in result else [result.get("Item") or {}]
    units = max(1, math.ceil(sum(_size(item) for item in items) / READ))
    return _units(parameters["TableName"], units * (1.0 if parameters.get("ConsistentRead") else 0.5), 0.0)


def _batch_units(table: str, request: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """Each record of a batch is rounded up by itself; one that is missing counts as the smallest."""
    items = result["Responses"].get(table, ())
    units = sum(max(1, math.ceil(_size(item) / READ)) for item in items) + len(request["Keys"]) - len(items)
    return _units(table, units * (1.0 if request.get("ConsistentRead") else 0.5), 0.0)


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
    """Write units of changes (table, before, after). ``each`` is the number of units for a KB of the table itself."""
    return float(sum(each * _begun_units(old, new) + _entries(table, old, new) for table, old, new in changes))


def _begun_units(*items: Any) -> int:
    sizes = [int(item.size()) for item in items if item is not None]
    return max(1, math.ceil(max(sizes) / WRITTEN))


def _entries(table: Any, old: Any, new: Any) -> int:
    """Units of the indexes. An entry that moves is deleted and written; an entry that stays and changes is written."""
    units = 0
    for index in table.global_indexes or []:
        names = [key["AttributeName"] for key in index.schema]
        before, after = _key(old, names), _key(new, names)
        if before == after:
            units += _begun_units(old, new) if before is not None and old.attrs != new.attrs else 0
        else:
            units += (_begun_units(old) if before is not None else 0) + (_begun_units(new) if after is not None else 0)
    return units


def _key(item: Any, names: Sequence[str]) -> tuple[Any, ...] | None:
    if item is None or any(name not in item.attrs for name in names):
        return None
    return tuple(item.attrs[name].value for name in names)
