"""The product's table in the crash world: moto's, behind the real adapter, or one in memory, which is much faster.

The matrix of one cloud proves the adapter. Those of others need only its contract, which the store in memory keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from moto.core.model_instances import reset_model_data
from moto.dynamodb.models import dynamodb_backends

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.dynamodb import codec
from stockyard.adapters.dynamodb.registry import first_id
from stockyard.domain.records import Outbox
from stockyard.errors import StoreError, StoreUnavailable
from stockyard.ports import Create, Write
from tests.harness.crash.faults import Errors, Intercept, Tap

ERRORS = Errors(lambda: StoreUnavailable("no answer"), lambda: StoreUnavailable("slow down"), lambda: StoreError("no"))
"""What the real adapter makes of what DynamoDB answers."""


class CrashTable(Protocol):
    """A table that every life finds empty."""

    def clear(self) -> None:
        """Forget every record."""
        ...

    def news(self) -> Sequence[Mapping[str, Any]]:
        """The records of the stream since they were asked for the last time."""
        ...


class MotoTable:
    """The table of this name in moto."""

    def __init__(self, name: str) -> None:
        self._name, self._position = name, 0

    def clear(self) -> None:
        """See ``CrashTable.clear``."""
        table = dynamodb_backends[OWN_ACCOUNT][REGION].tables[self._name]
        table.items.clear()
        table.stream_shard.items.clear()
        reset_model_data()  # else moto keeps whatever was ever made, for its dashboard
        self._position = 0

    def news(self) -> Sequence[Mapping[str, Any]]:
        """See ``CrashTable.news``."""
        shard = dynamodb_backends[OWN_ACCOUNT][REGION].tables[self._name].stream_shard
        fresh = [record.to_json() for record in shard.items[self._position :]]
        self._position = len(shard.items)
        return fresh


class MemoryCrashTable:
    """``ports.Registry`` in memory. Calls pass the tap under the names of DynamoDB's; the stream has the outbox."""

    def __init__(self, tap: Tap) -> None:
        self._tap = tap
        self.clear()

    def clear(self) -> None:
        """See ``CrashTable.clear``."""
        self._registry, self._stream = MemoryRegistry(), list[Mapping[str, Any]]()

    def news(self) -> Sequence[Mapping[str, Any]]:
        """See ``CrashTable.news``."""
        fresh, self._stream = self._stream, []
        return fresh

    def store(self, tenant: str) -> Any:
        """See ``ports.Registry.store``."""
        return _Store(self._registry.store(tenant), self._tap, partial(self._written, tenant))

    def platform(self) -> Any:
        """See ``ports.Registry.platform``."""
        return _Store(self._registry.platform(), self._tap, lambda _: None)

    def installation(self, randomness: bytes) -> str:
        """See ``ports.Registry.installation``."""
        return first_id(self.platform(), randomness)

    def all(self, kind: type[Any]) -> Iterable[tuple[str, Any]]:
        """See ``ports.Registry.all``."""
        return self._tap.around("dynamodb.Query", lambda: list(self._registry.all(kind)), ERRORS)

    def __getattr__(self, name: str) -> Any:
        operation = "DescribeTable" if name == "table_id" else "Query"
        return _passing(self._tap, f"dynamodb.{operation}", getattr(self._registry, name))

    def _written(self, tenant: str, writes: Sequence[Write]) -> None:
        for write in writes:
            if isinstance(write, Create) and isinstance(write.record, Outbox):
                image = {"NewImage": codec.to_item(tenant, write.record), "SequenceNumber": write.record.id}
                self._stream.append({"eventName": "INSERT", "dynamodb": image})


_BATCH = "BatchGetItem"
_OPERATIONS = {
    "get": "GetItem",
    "get_all": _BATCH,
    "get_together": _BATCH,
    "list": "Query",
    "next_number": "UpdateItem",
}


class _Store:
    def __init__(self, store: Any, tap: Tap, written: Any) -> None:
        self._store, self._tap, self._written = store, tap, written

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._store, name)
        if name not in _OPERATIONS:
            return member
        return _passing(self._tap, f"dynamodb.{_OPERATIONS[name]}", member)

    def commit(self, *writes: Write) -> None:
        """See ``ports.Store.commit``."""

        def work() -> None:
            self._store.commit(*writes)
            self._written(writes)

        self._tap.around("dynamodb.TransactWriteItems", work, ERRORS)


def _passing(tap: Tap, name: str, member: Any) -> Any:
    def call(*args: Any, **options: Any) -> Any:
        return tap.around(name, lambda: member(*args, **options), ERRORS)

    return call


# --- the services beside the table ------------------------------------------------------------------------------------


def keys(_client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
    """KMS's answer: a data key is opened only in the context that it was made for."""
    context = repr(sorted(parameters["EncryptionContext"].items())).encode()
    if operation == "GenerateDataKey":
        return {"Plaintext": b"0" * 32, "CiphertextBlob": b"sealed for " + context}
    assert parameters["CiphertextBlob"] == b"sealed for " + context
    return {"Plaintext": b"0" * 32}


def bus(_client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
    """EventBridge's answer to ``PutEvents``."""
    assert operation == "PutEvents"
    return {"FailedEntryCount": 0, "Entries": [{"EventId": "1"} for _ in parameters["Entries"]]}


LEAN: Mapping[str, Intercept] = {"kms": keys, "events": bus}
"""What stands for services that are beside the point, by their names."""
