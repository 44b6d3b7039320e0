"""The store against a plain dictionary: whatever is written in whatever order, both hold the same."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

import boto3
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from moto import mock_aws

from local.aws.corrections.tables import atomic_tables
from local.testing.memory_store import MemoryRegistry
from stockyard import errors
from stockyard.adapters.dynamodb.registry import DynamoRegistry
from stockyard.domain.records import Counter, Fact, Quota
from stockyard.ports import Add, Check, Create, Put, Registry, Remove, Replace, Write

SOAK = bool(os.environ.get("STOCKYARD_SOAK"))
TIME = "2026-01-31T12:00:00.000Z"
ids = st.sampled_from(["a", "a/1", "a/2", "b", "c#d"])
values = st.integers(0, 3)
versions = st.integers(1, 4)
writes = st.one_of(
    st.builds(Create, st.builds(Quota, ids, values, st.just(TIME))),
    st.builds(Put, st.builds(Fact, ids, st.text("xyz"), st.just(TIME))),
    st.builds(
        Replace,
        st.builds(Quota, ids, values, st.just(TIME), version=versions),
        st.just({}) | st.fixed_dictionaries({"limit": values}),
    ),
    st.builds(Remove, st.just(Quota), ids, st.none() | versions),
    st.builds(Check, st.just(Quota), ids, st.fixed_dictionaries({"limit": values})),
    st.builds(Add, ids, st.integers(-3, 3), st.none() | st.integers(0, 4)),
)
Model = dict[tuple[type[Any], str], Any]


def target(write: Write) -> tuple[type[Any], str]:
    match write:
        case Create() | Replace() | Put():
            return type(write.record), write.record.id
        case Remove() | Check():
            return write.kind, write.id
        case Add():
            return Counter, write.counter


def apply(model: Model, write: Write) -> type[errors.Conflict] | None:  # noqa: PLR0911 - one line per refusal
    """The contract once more, in the plainest words; changes ``model`` when the write holds."""
    key = target(write)
    old = model.get(key)
    match write:
        case Create():
            if old:
                return errors.Conflict
            model[key] = write.record
        case Put():
            model[key] = write.record
        case Replace():
            if write.fence and (not old or old.limit != write.fence["limit"]):
                return errors.Fenced
            if not old or old.version != write.record.version - 1:
                return errors.Conflict
            model[key] = write.record
        case Remove():
            if write.version is not None and (not old or old.version != write.version):
                return errors.Conflict
            model.pop(key, None)
        case Check():
            if not old or old.limit != write.equals["limit"]:
                return errors.Fenced
        case Add():
            before = old.value if old else 0
            after = max(0, before + write.by)
            if write.by > 0 and write.limit is not None and after > write.limit:
                return errors.Conflict
            model[key] = Counter(write.counter, after, version=old.version + 1 if old else 1)
    return None


class MemoryStoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        registry = self.registry()
        self.store, self.other = registry.store("acme"), registry.store("acme-2")
        self.model: Model = {}

    def registry(self) -> Registry:
        return MemoryRegistry()

    @rule(batch=st.lists(writes, min_size=1, max_size=4, unique_by=target))
    def commit(self, batch: list[Write]) -> None:
        after = dict(self.model)
        expected = next(
            ((kind, index) for index, write in enumerate(batch) if (kind := apply(after, write)) is not None), None
        )
        try:
            self.store.commit(*batch)
            error = None
        except errors.Conflict as fault:
            error = (type(fault), fault.index)
        assert error == expected
        if expected is None:
            self.model = after

    @rule(counter=ids)
    def number(self, counter: str) -> None:
        number = self.store.next_number(counter)
        assert apply(self.model, Add(counter, 1)) is None
        assert number == self.model[(Counter, counter)].value

    @rule(
        prefix=st.sampled_from(["", "a", "a/", "c#"]),
        newest_first=st.booleans(),
        limit=st.integers(1, 3),
        limit_is=st.none() | values,
    )
    def walk(self, prefix: str, newest_first: bool, limit: int, limit_is: int | None) -> None:
        filters = None if limit_is is None else {"limit": limit_is}
        expected = [
            record
            for (kind, name), record in self.model.items()
            if kind is Quota and name.startswith(prefix) and (limit_is is None or record.limit == limit_is)
        ]
        expected.sort(key=lambda record: str(record.id), reverse=newest_first)
        quotas: list[Quota] = []
        after: str | None = None
        while True:
            page = self.store.list(
                Quota, prefix=prefix, after=after, limit=limit, newest_first=newest_first, where=filters
            )
            quotas += page.items
            after = page.next_id
            if after is None:
                break
            assert len(page.items) == limit
        assert quotas == expected

    @invariant()
    def both_hold_the_same(self) -> None:
        for kind in (Quota, Fact, Counter):
            stored = {(kind, record.id): record for record in self.store.list(kind, limit=100).items}
            assert stored == {key: record for key, record in self.model.items() if key[0] is kind}
            assert self.other.list(kind).items == []


class DynamoStoreMachine(MemoryStoreMachine):
    def registry(self) -> Registry:
        self.cloud = ExitStack()
        self.cloud.enter_context(mock_aws())
        self.cloud.enter_context(atomic_tables())
        client = boto3.client("dynamodb", region_name="us-east-1")
        client.create_table(
            TableName="stockyard",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        )
        return DynamoRegistry(client, "stockyard")

    def teardown(self) -> None:
        self.cloud.close()


TestMemoryStore = MemoryStoreMachine.TestCase
TestMemoryStore.settings = settings(max_examples=2000 if SOAK else 60, stateful_step_count=40, deadline=None)
TestDynamoStore = DynamoStoreMachine.TestCase
TestDynamoStore.settings = settings(max_examples=300 if SOAK else 6, stateful_step_count=20, deadline=None)
