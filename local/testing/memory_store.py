"""The table in memory: the same contract as the DynamoDB store, for unit tests and small tools.

Records pass through the same codec and keys, so what the real table would refuse or change is refused or changed here.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar, assert_never

from stockyard import errors
from stockyard.adapters.dynamodb import batch, codec, keys
from stockyard.adapters.dynamodb.registry import first_id
from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import Counter, NodeClaim, Record
from stockyard.domain.values import times
from stockyard.ports import Add, Check, Create, Page, Put, Remove, Replace, Store, Write

R = TypeVar("R", bound=Record)

_UNCHANGED: codec.Item = {}
"""Stands for the item of a check, which writes nothing."""


class MemoryTable:
    """Items by partition and sort key, behind one lock."""

    id = "table-1"
    """The id of the table. A restored copy would have a different id."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.partitions: defaultdict[str, dict[str, codec.Item]] = defaultdict(dict)

    def items(self) -> Iterator[codec.Item]:
        """Every item of every tenant. Hold the lock while iterating."""
        for partition in self.partitions.values():
            yield from partition.values()


class MemoryStore:
    """One tenant's records. Implements ``ports.Store``; see ``DynamoStore`` for what is ``Fenced``."""

    def __init__(self, table: MemoryTable, tenant: str) -> None:
        self._table = table
        self._tenant = keys.checked_tenant(tenant)

    @classmethod
    def platform(cls, table: MemoryTable) -> MemoryStore:
        """The records of the installation itself."""
        store = cls.__new__(cls)
        store._table, store._tenant = table, PLATFORM
        return store

    @property
    def tenant(self) -> str:
        """Tenant that owns these records."""
        return self._tenant

    def get(self, kind: type[R], id: str) -> R | None:
        """The record, or None."""
        with self._table.lock:
            item = self._partition(kind, id).get(id)
            return None if item is None else codec.from_item(kind, item)

    def get_all(self, kind: type[R], ids: Sequence[str], *, consistent: bool = True) -> Sequence[R]:  # noqa: ARG002
        """The records of these ids; see ``ports.Store.get_all``."""
        records = map(partial(self.get, kind), ids)
        return [record for record in records if record is not None]

    def get_together(self, *names: tuple[type[Any], str]) -> tuple[Any, ...]:
        """See ``ports.Store.get_together``."""
        return tuple(self.get(kind, name) for kind, name in names)

    def list(
        self,
        kind: type[R],
        *,
        prefix: str = "",
        after: str | None = None,
        limit: int = 50,
        newest_first: bool = False,
        since: str = "",
        where: Mapping[str, Any] | None = None,
        most: int | None = None,
        consistent: bool = True,  # noqa: ARG002 - always is
    ) -> Page[R]:
        """A page of records; see ``ports.Store.list``."""
        if limit < 1:
            raise ValueError("limit must be at least 1")
        conditions = batch.equalities(kind, where or {})
        with self._table.lock:
            partition = self._partition(kind, prefix)
            matches = (name for name in partition if name.startswith(prefix) and name >= since)
            names = sorted(matches, reverse=newest_first)
            if after is not None:
                names = [name for name in names if (name < after if newest_first else name > after)]
            read = names if most is None else names[:most]
            matching = [name for name in read if all(equal.holds(partition[name]) for equal in conditions)]
            items = [codec.from_item(kind, partition[name]) for name in matching[:limit]]
        more = read[-1] if len(read) < len(names) else None
        looked_at = read.index(matching[limit]) if len(matching) > limit else len(read)
        return Page(items, matching[limit - 1] if len(matching) > limit else more, looked_at)

    def lacking_entries(self, kind: type[R], *, since: str, until: str, limit: int = 100, most: int = 1000) -> Page[R]:
        """See ``ports.Store.lacking_entries``."""
        with self._table.lock:
            partition = self._partition(kind, "")
            names = sorted(name for name in partition if since <= name <= until)
            read = names[:most]
            lacking = [name for name in read if "all_pk" not in partition[name]][:limit]
            items = [codec.from_item(kind, partition[name]) for name in lacking]
        last = lacking[-1:] if len(lacking) == limit else read[-1:]
        return Page(items, None if last == names[-1:] else last[0], len(read))

    def commit(self, *writes: Write) -> None:
        """All writes or none; see ``ports.Store.commit``."""
        batch.check(self._tenant, writes)
        with self._table.lock:
            results = [self._result(index, write) for index, write in enumerate(writes)]
            for write, item in zip(writes, results, strict=True):
                kind, name = batch.target(write)
                if item is None:
                    self._partition(kind, name).pop(name, None)
                elif item is not _UNCHANGED:
                    self._partition(kind, name)[name] = item

    def next_number(self, counter: str) -> int:
        """Add 1 to a counter and return it."""
        with self._table.lock:
            self.commit(Add(counter, 1))
            record = self.get(Counter, counter)
            return record.value if record else 0

    def _partition(self, kind: keys.Kind, id: str) -> dict[str, codec.Item]:
        return self._table.partitions[keys.partition(self._tenant, kind, id)]

    def _result(self, index: int, write: Write) -> codec.Item | None:
        """The item after the write; None when it is removed. Raises ``Conflict``; changes nothing."""
        kind, name = batch.target(write)
        old = self._partition(kind, name).get(name)
        match write:
            case Create():
                if old is not None:
                    raise errors.Conflict(f"{kind.__name__} {name} exists already", index=index)
                return codec.to_item(self._tenant, write.record)
            case Replace():
                return self._replaced(index, write, old)
            case Put():
                return codec.to_item(self._tenant, write.record)
            case Remove():
                self._check_fence(index, write, old)
                if write.version is not None and (old is None or old["version"] != codec.encode(write.version)):
                    raise errors.Conflict(f"{kind.__name__} {name} is not at version {write.version}", index=index)
                return None
            case Check():
                conditions = batch.equalities(kind, write.equals)
                if old is None or not all(equal.holds(old) for equal in conditions):
                    raise errors.Fenced(f"{kind.__name__} {name} has moved on", index=index)
                return _UNCHANGED
            case Add():
                return self._added(index, write)
            case _:
                assert_never(write)

    def _replaced(self, index: int, write: Replace, old: codec.Item | None) -> codec.Item:
        kind, name = batch.target(write)
        self._check_fence(index, write, old)
        if old is None or old["version"] != codec.encode(write.record.version - 1):
            raise errors.Conflict(f"{kind.__name__} {name} is not at version {write.record.version - 1}", index=index)
        return codec.to_item(self._tenant, write.record)

    @staticmethod
    def _check_fence(index: int, write: Replace | Remove, old: codec.Item | None) -> None:
        kind, name = batch.target(write)
        fence = batch.equalities(kind, write.fence)
        if fence and (old is None or not all(equal.holds(old) for equal in fence)):
            raise errors.Fenced(f"{kind.__name__} {name} has moved on", index=index)

    def _added(self, index: int, write: Add) -> codec.Item:
        old = self.get(Counter, write.counter) or Counter(write.counter, version=0)
        value = max(0, old.value + write.by)
        if write.limit is not None and write.by > 0 and value > write.limit:
            raise errors.Conflict(f"Counter {write.counter} would exceed {write.limit}", index=index)
        return codec.to_item(self._tenant, Counter(write.counter, value, version=old.version + 1))


class MemoryRegistry:
    """Registry of what spans tenants. Implements ``ports.Registry``."""

    def __init__(self, table: MemoryTable | None = None) -> None:
        self.table = table or MemoryTable()

    def store(self, tenant: str) -> Store:
        """The records of one tenant."""
        return MemoryStore(self.table, tenant)

    def platform(self) -> Store:
        """The records of the installation itself."""
        return MemoryStore.platform(self.table)

    def due(
        self,
        kind: type[R],
        before: datetime,
        limit: int = 100,
        since: datetime | None = None,
        tenants: Collection[str] | None = None,
    ) -> Sequence[tuple[str, R]]:
        """(tenant, record) of what is due before the moment, the oldest first."""
        moments = times.to_text(since) if since else "", times.to_text(before)
        due = [
            entry
            for name in keys.due_partitions(kind, tenants)
            for entry in self._indexed(kind, "due", name, moments, limit if tenants is None else None)
            if tenants is None or entry[0] in tenants
        ]
        due.sort(key=lambda entry: (keys.due_at(entry[1]) or "", entry[1].id))
        return due[:limit]

    def in_hand(self, cluster_id: str) -> Sequence[tuple[str, NodeClaim]]:
        """See ``ports.Registry.in_hand``."""
        return self._indexed(NodeClaim, "due", keys.hand_partition(cluster_id), None, None)

    def all(self, kind: type[R]) -> Iterator[tuple[str, R]]:
        """(tenant, record) of every record of the kind, in order of id and tenant."""
        return iter(self._indexed(kind, "all", keys.everything_partition(kind), None, None))

    def tenant_of(self, kind: type[R], id: str) -> str | None:
        """See ``ports.Registry.tenant_of``."""
        return next((tenant for tenant, record in self.all(kind) if record.id == id), None)

    def table_id(self) -> str:
        """The id of the table behind."""
        return self.table.id

    def installation(self, randomness: bytes) -> str:
        """The installation's id; made of ``randomness`` when there is none yet."""
        return first_id(self.platform(), randomness)

    def _indexed(
        self, kind: type[R], index: str, partition: str, moments: tuple[str, str] | None, limit: int | None
    ) -> Sequence[tuple[str, R]]:
        with self.table.lock:
            items = [item for item in self.table.items() if item.get(f"{index}_pk") == {"S": partition}]
            items.sort(key=lambda item: str(item[f"{index}_sk"]["S"]))
            if moments is not None:
                items = [item for item in items if moments[0] <= str(item[f"{index}_sk"]["S"]) < moments[1]]
            return [(item["tenant"]["S"], codec.from_item(kind, item)) for item in items[:limit]]
