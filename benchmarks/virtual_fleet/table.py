"""The product's table in memory: answers the calls of its adapter, and counts what each consumes as DynamoDB does.

The same units as ``local/aws/corrections/capacity.py``, which a test compares on random calls; and by partition, also
those of the indexes. A query counts what it reads before it filters, and a refused write what it would have written.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.virtual_fleet.expressions import Range, condition, key_range, updated

Item = dict[str, Any]
Count = Callable[[str, str, float], None]
"""Takes units: ``read`` or ``write``, the partition, how many."""
READ, WRITTEN, PAGE = 4096, 1024, 1024 * 1024
INDEXES = {"due": ("due_pk", "due_sk"), "everything": ("all_pk", "all_sk")}
"""The table's indexes with their keys; each has whole items."""
_NONE = {"Code": "None"}


def size(value: Any) -> int:
    """Bytes of an attribute."""
    ((tag, inner),) = value.items()
    if tag == "S":
        return len(inner) if inner.isascii() else len(inner.encode())
    if tag == "M":
        return sum(_bytes(name) + size(each) for name, each in inner.items())
    if tag == "L":
        return sum(map(size, inner))
    return 1 if tag in ("BOOL", "NULL") else len(inner)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


@dataclass(slots=True)
class Entry:
    """An item with its size."""

    item: Item
    size: int

    @classmethod
    def of(cls, item: Item) -> Entry:
        """The entry of an item."""
        return cls(item, sum(_bytes(name) + size(value) for name, value in item.items()))

    @property
    def units(self) -> int:
        """Units of its write."""
        return max(1, math.ceil(self.size / WRITTEN))


@dataclass(slots=True)
class Partition:
    """Entries by sort key. ``order`` has the keys in their order; in an index a key has the item's own behind it."""

    entries: dict[Any, Entry] = field(default_factory=dict)
    order: list[Any] = field(default_factory=list)

    def put(self, key: Any, entry: Entry) -> None:
        """Add or replace."""
        if key not in self.entries:
            insort(self.order, key)
        self.entries[key] = entry

    def pop(self, key: Any) -> None:
        """Take away what is there."""
        del self.entries[key]
        del self.order[bisect_left(self.order, key)]


class LeanTable:
    """``count`` is told what each call consumes; ``changes`` has (old, new) of each write since it was cleared."""

    def __init__(self, count: Count, id: str = "fleet") -> None:
        self._count, self._id = count, id
        self.partitions: dict[str, Partition] = {}
        self.indexed: dict[str, dict[str, Partition]] = {name: {} for name in INDEXES}
        self.changes: list[tuple[Item | None, Item | None]] = []

    def answer(self, client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        """The answer to a call of the adapter. Raises what its client raises."""
        calls: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {
            "BatchGetItem": self._batch,
            "DescribeTable": lambda _, request: {"Table": {"TableName": request["TableName"], "TableId": self._id}},
            "GetItem": self._get,
            "Query": self._query,
            "TransactWriteItems": self._transact,
            "UpdateItem": self._update,
        }
        return calls[operation](client, parameters)

    def items(self) -> Iterator[Item]:
        """Every item."""
        for partition in self.partitions.values():
            for entry in partition.entries.values():
                yield entry.item

    def has(self, item: Mapping[str, Any]) -> bool:
        """Whether this very item is there."""
        entry = self._entry(item)
        return entry is not None and entry.item is item

    def bytes(self) -> int:
        """Bytes of all items, and of what the indexes have of them."""
        places = (*self.partitions.values(), *(each for index in self.indexed.values() for each in index.values()))
        return sum(entry.size for partition in places for entry in partition.entries.values())

    # --- reads ---

    def _entry(self, key: Mapping[str, Any]) -> Entry | None:
        partition = self.partitions.get(key["pk"]["S"])
        return partition.entries.get(key["sk"]["S"]) if partition is not None else None

    def _read(self, partition: str, bytes_read: int, consistent: bool) -> None:
        self._count("read", partition, max(1, math.ceil(bytes_read / READ)) * (1.0 if consistent else 0.5))

    def _get(self, _: Any, request: Mapping[str, Any]) -> Any:
        entry = self._entry(request["Key"])
        consistent = bool(request.get("ConsistentRead"))
        self._read(request["Key"]["pk"]["S"], entry.size if entry is not None else 0, consistent)
        return {"Item": entry.item} if entry is not None else {}

    def _batch(self, _: Any, request: Mapping[str, Any]) -> Any:
        ((table, asks),) = request["RequestItems"].items()
        items = []
        for key in asks["Keys"]:
            entry = self._entry(key)
            consistent = bool(asks.get("ConsistentRead"))
            self._read(key["pk"]["S"], entry.size if entry is not None else 0, consistent)
            items += [entry.item] if entry is not None else []
        return {"Responses": {table: items}, "UnprocessedKeys": {}}

    def _query(self, _: Any, request: Mapping[str, Any]) -> Any:
        names, values = request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {})
        part, index = key_range(request["KeyConditionExpression"], names, values), request.get("IndexName")
        there = self.indexed[index] if index else self.partitions
        partition = there.get(part.partition, Partition())
        keys, forward = self._keys(partition, part, bool(index)), request.get("ScanIndexForward", True)
        keys = keys if forward else keys[::-1]
        if request.get("ExclusiveStartKey"):
            start = self._sort_key(request["ExclusiveStartKey"], index)
            ordered = keys if forward else keys[::-1]
            keys = keys[bisect_right(ordered, start) if forward else len(keys) - bisect_left(ordered, start) :]
        entries, read, most = list[Entry](), 0, request.get("Limit", len(keys) + 1)
        for key in keys:
            if len(entries) >= most or read >= PAGE:
                break
            entries.append(partition.entries[key])
            read += entries[-1].size
        name = f"{index}: {part.partition}" if index else part.partition
        self._read(name, read, bool(request.get("ConsistentRead")))
        items = [entry.item for entry in entries]
        answer: dict[str, Any] = {}
        if len(entries) < len(keys) or len(entries) == most:
            attributes = ("pk", "sk", *(INDEXES[index] if index else ()))
            answer["LastEvaluatedKey"] = {attribute: items[-1][attribute] for attribute in attributes}
        if "FilterExpression" in request:
            holds = condition(request["FilterExpression"])
            items = [item for item in items if holds(item, names, values)]
        return {**answer, "Items": items, "Count": len(items), "ScannedCount": len(entries)}

    def _keys(self, partition: Partition, part: Range, indexed: bool) -> list[Any]:
        def bound(key: str, last: bool) -> Any:
            return (key, *(("\U0010ffff",) * 2 if last else ())) if indexed else key

        begin = 0 if part.low is None else bisect_left(partition.order, bound(part.low, False))
        end = len(partition.order) if part.high is None else bisect_right(partition.order, bound(part.high, True))
        return partition.order[begin:end]

    @staticmethod
    def _sort_key(key: Mapping[str, Any], index: str | None) -> Any:
        return _index_key(key, INDEXES[index][1]) if index else key["sk"]["S"]

    # --- writes ---

    def _transact(self, client: Any, request: Mapping[str, Any]) -> Any:
        results, reasons = list[tuple[Mapping[str, Any], Entry | None, Entry | None]](), list[Any]()
        for write in request["TransactItems"]:
            ((kind, parts),) = write.items()
            key = parts["Item"] if kind == "Put" else parts["Key"]
            old = self._entry(key)
            holds = "ConditionExpression" not in parts or _fulfils(parts, old)
            reasons.append(_NONE if holds else _refusal(parts, old))
            new = old if kind == "ConditionCheck" or not holds else _result(kind, parts, old)
            results.append((key, old, new))
            if kind == "ConditionCheck":
                self._count("write", key["pk"]["S"], 2.0)
        refused = any(reason is not _NONE for reason in reasons)
        for write, (key, old, new) in zip(request["TransactItems"], results, strict=True):
            if "ConditionCheck" not in write:
                self._written(key, old, new, 2, apply=not refused)
        if refused:
            response = {
                "Error": {"Code": "TransactionCanceledException", "Message": "Transaction cancelled"},
                "CancellationReasons": reasons,
                "ResponseMetadata": {"HTTPStatusCode": 400},
            }
            raise client.exceptions.TransactionCanceledException(response, "TransactWriteItems")
        return {}

    def _update(self, _: Any, request: Mapping[str, Any]) -> Any:
        old = self._entry(request["Key"])
        new = _result("Update", request, old)
        self._written(request["Key"], old, new, 1, apply=True)
        return {"Attributes": new.item if new is not None else {}}

    def _written(self, key: Mapping[str, Any], old: Entry | None, new: Entry | None, each: int, *, apply: bool) -> None:
        pk, sk = key["pk"]["S"], key["sk"]["S"]
        if old is None and new is None:
            self._count("write", pk, float(each))
            return
        units = max(entry.units for entry in (old, new) if entry is not None)
        self._count("write", pk, float(each * units))
        if not apply:
            return
        partition = self.partitions.setdefault(pk, Partition())
        if new is None:
            partition.pop(sk)
        else:
            partition.put(sk, new)
        for index, attributes in INDEXES.items():
            self._indexed_anew(index, attributes, old, new)
        self.changes.append((old.item if old else None, new.item if new else None))

    def _indexed_anew(self, index: str, attributes: Sequence[str], old: Entry | None, new: Entry | None) -> None:
        before, after = _index_keys(old, attributes), _index_keys(new, attributes)
        there = self.indexed[index]
        if before is not None and before != after:
            there[before[0]].pop(before[1])
        if after is not None and new is not None:
            there.setdefault(after[0], Partition()).put(after[1], new)
        if before == after:
            if before is not None and old is not None and new is not None and old.item != new.item:
                self._count("write", f"{index}: {before[0]}", float(max(old.units, new.units)))
            return
        if before is not None and old is not None:
            self._count("write", f"{index}: {before[0]}", float(old.units))
        if after is not None and new is not None:
            self._count("write", f"{index}: {after[0]}", float(new.units))


def _index_keys(entry: Entry | None, attributes: Sequence[str]) -> tuple[str, Any] | None:
    """The partition of an index and the key there; None for an item that is not in the index."""
    if entry is None or any(name not in entry.item for name in attributes):
        return None
    return entry.item[attributes[0]]["S"], _index_key(entry.item, attributes[1])


def _index_key(item: Mapping[str, Any], attribute: str) -> tuple[str, str, str]:
    return item[attribute]["S"], item["pk"]["S"], item["sk"]["S"]


def _fulfils(parts: Mapping[str, Any], old: Entry | None) -> bool:
    names, values = parts.get("ExpressionAttributeNames", {}), parts.get("ExpressionAttributeValues", {})
    return condition(parts["ConditionExpression"])(old.item if old is not None else {}, names, values)


def _refusal(parts: Mapping[str, Any], old: Entry | None) -> Mapping[str, Any]:
    tells = old is not None and parts.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
    return {"Code": "ConditionalCheckFailed", **({"Item": old.item} if old is not None and tells else {})}


def _result(kind: str, parts: Mapping[str, Any], old: Entry | None) -> Entry | None:
    if kind == "Put":
        return Entry.of(parts["Item"])
    if kind == "Delete":
        return None
    names, values = parts.get("ExpressionAttributeNames", {}), parts.get("ExpressionAttributeValues", {})
    return Entry.of(
        updated(parts["UpdateExpression"], names, values, old.item if old is not None else dict(parts["Key"]))
    )
