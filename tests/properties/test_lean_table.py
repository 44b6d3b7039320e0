"""The table in memory of the benchmark of a fleet: its answers, refusals and units are those of moto's table, counted
by the local cloud, for random calls of the product's adapter."""

from __future__ import annotations

import os
from collections import Counter as Counts
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from botocore.client import BaseClient
from hypothesis import given, settings
from hypothesis import strategies as st
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID

from benchmarks.virtual_fleet.table import LeanTable
from benchmarks.virtual_time.stage import ENVIRONMENT, TABLE
from local.aws.corrections import capacity
from local.aws.corrections.quick.tables import quick_tables
from local.aws.corrections.tables import atomic_tables
from local.testing import direct_table
from stockyard.adapters.dynamodb import calls
from stockyard.adapters.dynamodb.registry import DynamoRegistry
from stockyard.domain.records import Cluster, Fact, NodeClaim
from stockyard.domain.values import times
from stockyard.errors import StockyardError
from stockyard.ports import Add, Check, Create, Put, Remove, Replace

NAMES = ("a", "b", "c", "d/1", "d/2", "é")
NAME = st.sampled_from(NAMES)
TEXT = st.sampled_from(("", "x", "é" * 700, "y" * 5000))
MOMENT = "2026-01-01T00:00:00.000Z"
CLUSTER = Cluster(
    id="a",
    name="a",
    description="",
    cluster_type="k8s",
    provider="aws",
    cloud_account_id=1,
    client_id="a",
    status="preparing",
    settings={},
    created_at=MOMENT,
    updated_at=MOMENT,
    driver="ec2",
    lease_expires_at=MOMENT,
)
OPERATION = st.one_of(
    st.tuples(st.just("put"), NAME, TEXT),
    st.tuples(st.just("create"), NAME, TEXT),
    st.tuples(st.just("remove"), NAME, TEXT),
    st.tuples(st.just("check"), NAME, TEXT),
    st.tuples(st.just("add"), NAME, st.integers(0, 3)),
    st.tuples(st.just("number"), NAME, TEXT),
    st.tuples(st.just("cluster"), NAME, st.sampled_from(("ready", "preparing", "deleted"))),
    st.tuples(st.just("get"), NAME, TEXT),
    st.tuples(st.just("all"), NAME, TEXT),
    st.tuples(st.just("list"), NAME, st.sampled_from(("", "a", "d/"))),
    st.tuples(st.just("newest"), NAME, TEXT),
    st.tuples(st.just("due"), NAME, TEXT),
    st.tuples(st.just("everywhere"), NAME, TEXT),
)


@contextmanager
def world() -> Iterator[tuple[dict[str, Any], Counts[str]]]:
    """Inside this context clients ask moto's table, or the other, by ``table``; the units are counted by it."""
    units: Counts[str] = Counts()
    lean = LeanTable(lambda kind, _, n: units.update({f"lean {kind}": n}))
    table: dict[str, Any] = {"name": "moto"}

    def call(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        if table["name"] == "lean":
            return lean.answer(client, operation, parameters)
        capacity._changes.made = []
        answer = direct_table.answer(client, operation, parameters, DEFAULT_ACCOUNT_ID)
        used = capacity._consumed(parameters, answer)
        for each in used if isinstance(used, list) else [used]:
            units.update({"moto read": each["ReadCapacityUnits"], "moto write": each["WriteCapacityUnits"]})
        return answer

    with patch.dict(os.environ, ENVIRONMENT), mock_aws(), quick_tables(), capacity.counted_capacity(), atomic_tables():
        direct_table.make(TABLE)
        with patch.object(BaseClient, "_make_api_call", call):
            yield table, units


def carried_out(registry: DynamoRegistry, operation: tuple[str, str, Any]) -> Any:
    """Answer of an operation, or its refusal."""
    kind, name, value = operation
    store, now = registry.store("acme"), times.from_text(MOMENT)
    fact = Fact(name, str(value), MOMENT)
    cluster = replace(CLUSTER, id=name, description=str(value))
    before = store.get(Cluster, name) if kind == "cluster" else None
    moved = replace(cluster, status=value, version=before.version + 1) if before is not None else cluster
    steps = {
        "put": lambda: store.commit(Put(fact), Put(replace(fact, id=f"{name}/2"))),
        "create": lambda: store.commit(Create(fact), Put(replace(fact, id=f"{name}/3"))),
        # To remove what is not there is a write for AWS, and none for the local cloud.
        "remove": lambda: (store.commit(Put(fact)), store.commit(Remove(Fact, name))),
        "check": lambda: store.commit(Check(Fact, name, {"value": str(value)}), Put(replace(fact, id=f"{name}/4"))),
        "add": lambda: store.commit(Add(name, value, 4)),
        "number": lambda: store.next_number(name),
        "cluster": lambda: store.commit(Create(cluster) if before is None else Replace(moved)),
        "get": lambda: store.get(Fact, name),
        "all": lambda: store.get_all(Fact, NAMES),
        "list": lambda: store.list(Fact, prefix=str(value), after=name, limit=2),
        "newest": lambda: store.list(Fact, after=name, limit=2, newest_first=True),
        "due": lambda: (registry.due(Cluster, now + timedelta(hours=1), 2), registry.due(NodeClaim, now)),
        "everywhere": lambda: (list(registry.all(Cluster)), registry.tenant_of(Cluster, name)),
    }
    try:
        return steps[kind]()
    except (StockyardError, ValueError) as error:
        return type(error).__name__, str(error)


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[DynamoRegistry, dict[str, Any], Counts[str]]]:
    with world() as (table, units):
        registry = DynamoRegistry(calls.client(), TABLE)
        for table["name"] in ("moto", "lean"):
            for name in NAMES:
                # An update that makes its item is counted twice by the local cloud.
                registry.store("acme").next_number(name)
        yield registry, table, units


@given(st.lists(OPERATION, min_size=1, max_size=12))
@settings(max_examples=25, deadline=None)
def test_answers_and_units_are_those_of_the_other_table(
    both: tuple[DynamoRegistry, dict[str, Any], Counts[str]], operations: list[tuple[str, str, Any]]
) -> None:
    registry, table, units = both
    # Both tables go on from example to example: what differs would differ for ever.
    for operation in operations:
        units.clear()
        answers = []
        for name in ("moto", "lean"):
            table["name"] = name
            answers.append(carried_out(registry, operation))
        assert answers[0] == answers[1], operation
        if isinstance(answers[0], tuple) and answers[0] and isinstance(answers[0][0], str):
            continue  # a refused write is counted by one of them only
        assert (units["lean read"], units["lean write"]) == (units["moto read"], units["moto write"]), operation
