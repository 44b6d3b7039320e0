"""The contract of ``ports.Store``: records, conditions, transactions and counters."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from stockyard import errors
from stockyard.domain.records import (
    Cluster,
    Counter,
    Event,
    Fact,
    Name,
    Operation,
    OperationError,
    Outbox,
    PhaseRecord,
    PriceSheet,
    Quota,
)
from stockyard.domain.values.conditions import Condition
from stockyard.ports import Add, Check, Create, Put, Remove, Replace, Store

TIME = "2026-01-31T12:00:00.000Z"
NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


# --- records ----------------------------------------------------------------------------------------------------------


def test_record_round_trip(store: Store, cluster: Callable[..., Any]) -> None:
    condition = Condition("Ready", "False", "Creating", "network", TIME)
    record = cluster(conditions=(condition,), tags={"team": "blue"}, remaining=("a subnet",), phase="network")
    store.commit(Create(record))
    assert store.get(Cluster, "clu_1") == record


def test_nested_records_and_numbers_round_trip(store: Store) -> None:
    operation = Operation(
        id="op_1",
        kind="create_cluster",
        subject="clu_1",
        status="failed",
        phases=(PhaseRecord("account", "succeeded", TIME, TIME, 1), PhaseRecord("network")),
        created_at=TIME,
        updated_at=TIME,
        actor="ada",
        error=OperationError("ClusterCouldNotBeDeployed", "network", "no room", "ask for more"),
    )
    sheet = PriceSheet("eu-west-1", TIME, bytes(range(256)))
    store.commit(Create(operation), Create(sheet))
    assert store.get(Operation, "op_1") == operation
    assert store.get(PriceSheet, "eu-west-1") == sheet


def test_get_returns_none_for_missing_record(store: Store) -> None:
    assert store.get(Cluster, "clu_1") is None


def test_records_of_different_kinds_can_have_same_id(store: Store) -> None:
    store.commit(Create(Name("same", "clu_1")), Create(Quota("same", 3, TIME)))
    assert store.get(Name, "same") == Name("same", "clu_1")
    assert store.get(Quota, "same") == Quota("same", 3, TIME)


def test_changing_a_read_record_does_not_change_stored_record(store: Store, cluster: Callable[..., Any]) -> None:
    store.commit(Create(cluster()))
    record = store.get(Cluster, "clu_1")
    assert record is not None
    record.settings["region_name"] = "elsewhere"
    again = store.get(Cluster, "clu_1")
    assert again is not None
    assert again.settings["region_name"] == "us-east-1"


def test_record_above_size_limit_is_refused_with_its_name(store: Store, cluster: Callable[..., Any]) -> None:
    big = cluster(settings={"text": "x" * 350_000})
    with pytest.raises(errors.InvalidInput, match="Cluster clu_1 has 35"):
        store.commit(Create(big))
    assert store.get(Cluster, "clu_1") is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**40, 1e-200, {1: 2}, "\ud800", {"a"}])
def test_unsupported_values_are_refused(store: Store, value: Any, cluster: Callable[..., Any]) -> None:
    record = cluster(settings={"value": value})
    with pytest.raises(errors.InvalidInput, match="Cluster clu_1 cannot be stored"):
        store.commit(Create(record))


@pytest.mark.parametrize("id", ["", "x" * 1025])
def test_invalid_ids_are_refused(store: Store, id: str) -> None:
    with pytest.raises(errors.InvalidInput):
        store.commit(Create(Name(id, "clu_1")))


# --- conditions -------------------------------------------------------------------------------------------------------


def test_create_conflicts_with_existing_record(store: Store, cluster: Callable[..., Any]) -> None:
    store.commit(Create(cluster()))
    with pytest.raises(errors.Conflict) as caught:
        store.commit(Create(cluster(name="two")))
    assert (type(caught.value), caught.value.index) == (errors.Conflict, 0)
    record = store.get(Cluster, "clu_1")
    assert record is not None
    assert record.name == "one"


def test_replace_requires_previous_version(store: Store, cluster: Callable[..., Any]) -> None:
    store.commit(Create(cluster()))
    store.commit(Replace(cluster(name="two", version=2)))
    for stale in (1, 2, 4):
        with pytest.raises(errors.Conflict) as caught:
            store.commit(Replace(cluster(name="three", version=stale)))
        assert type(caught.value) is errors.Conflict
    record = store.get(Cluster, "clu_1")
    assert record is not None
    assert (record.name, record.version) == ("two", 2)


def test_replace_of_missing_record_conflicts(store: Store, cluster: Callable[..., Any]) -> None:
    with pytest.raises(errors.Conflict) as caught:
        store.commit(Replace(cluster(version=2)))
    assert type(caught.value) is errors.Conflict


def test_replace_with_none_removes_attribute(store: Store, cluster: Callable[..., Any]) -> None:
    store.commit(Create(cluster(phase="network")))
    store.commit(Replace(cluster(phase=None, version=2)))
    record = store.get(Cluster, "clu_1")
    assert record is not None
    assert record.phase is None


def test_fence_distinguishes_stale_writer_from_conflict(store: Store, cluster: Callable[..., Any]) -> None:
    store.commit(Create(cluster(operation_id="op_2", generation=2)))
    changed = cluster(operation_id="op_2", generation=2, phase="network", version=2)
    with pytest.raises(errors.Fenced) as caught:
        store.commit(Replace(changed, {"operation_id": "op_1", "generation": 1}))
    assert caught.value.index == 0
    with pytest.raises(errors.Conflict) as version:
        store.commit(Replace(replace(changed, version=5), {"operation_id": "op_2", "generation": 2}))
    assert type(version.value) is errors.Conflict
    store.commit(Replace(changed, {"operation_id": "op_2", "generation": 2}))
    assert store.get(Cluster, "clu_1") == changed


def test_fence_on_missing_record_raises_fenced(store: Store, cluster: Callable[..., Any]) -> None:
    with pytest.raises(errors.Fenced):
        store.commit(Replace(cluster(version=2), {"operation_id": "op_1"}))


def test_fence_accepts_none_and_reserved_names(store: Store, cluster: Callable[..., Any]) -> None:
    outbox = Outbox("out_1", "event", {}, TIME)
    store.commit(Create(cluster()), Create(outbox))
    store.commit(Check(Cluster, "clu_1", {"operation_id": None}), Check(Outbox, "out_1", {"kind": "event"}))
    with pytest.raises(errors.Fenced):
        store.commit(Check(Outbox, "out_1", {"kind": "workflow"}))
    with pytest.raises(errors.Fenced):
        store.commit(Check(Cluster, "clu_1", {"status": None}))


def test_check_requires_record(store: Store) -> None:
    with pytest.raises(errors.Fenced):
        store.commit(Check(Cluster, "clu_1", {}))


def test_condition_on_unknown_field_raises_value_error(store: Store) -> None:
    with pytest.raises(ValueError, match="no field"):
        store.commit(Check(Cluster, "clu_1", {"colour": "red"}))


def test_put_overwrites(store: Store) -> None:
    store.commit(Put(Fact("clu_1/reported_ready", "1", TIME)))
    store.commit(Put(Fact("clu_1/reported_ready", "2", TIME)))
    fact = store.get(Fact, "clu_1/reported_ready")
    assert fact is not None
    assert fact.value == "2"


def test_remove_with_and_without_version(store: Store, cluster: Callable[..., Any]) -> None:
    store.commit(Create(cluster()))
    for wrong in (2, 0):
        with pytest.raises(errors.Conflict):
            store.commit(Remove(Cluster, "clu_1", version=wrong))
    assert store.get(Cluster, "clu_1") is not None
    store.commit(Remove(Cluster, "clu_1", version=1))
    assert store.get(Cluster, "clu_1") is None
    store.commit(Remove(Cluster, "clu_1"))
    with pytest.raises(errors.Conflict):
        store.commit(Remove(Cluster, "clu_1", version=1))


# --- transactions -----------------------------------------------------------------------------------------------------


def test_commit_is_atomic_and_names_first_failed_write(store: Store, cluster: Callable[..., Any]) -> None:
    store.commit(Create(Name("cluster/taken", "clu_0")))
    with pytest.raises(errors.Conflict) as caught:
        store.commit(
            Create(cluster()),
            Add("clusters", 1),
            Create(Name("cluster/taken", "clu_1")),
            Check(Cluster, "clu_9", {"status": "ready"}),
        )
    assert (type(caught.value), caught.value.index) == (errors.Conflict, 2)
    assert store.get(Cluster, "clu_1") is None
    assert store.get(Counter, "clusters") is None


def test_commit_refuses_two_writes_of_one_record(store: Store, cluster: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="two writes of Cluster clu_1"):
        store.commit(Create(cluster()), Check(Cluster, "clu_1", {}))


def test_commit_refuses_more_than_hundred_writes(store: Store, event: Callable[..., Any]) -> None:
    store.commit(*[Create(event(number)) for number in range(100)])
    with pytest.raises(ValueError, match="101 writes"):
        store.commit(*[Create(event(number)) for number in range(200, 301)])
    assert len(store.list(Event, limit=200).items) == 100


def test_commit_without_writes_does_nothing(store: Store) -> None:
    store.commit()


def test_one_of_concurrent_writers_of_one_version_wins(store: Store, cluster: Callable[..., Any]) -> None:
    store.commit(Create(cluster()))

    def write(number: int) -> bool:
        try:
            store.commit(Replace(cluster(name=f"n{number}", version=2)))
        except errors.Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(24))) == 1


# --- counters ---------------------------------------------------------------------------------------------------------


def test_next_number_rises_and_is_unique(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: store.next_number("accounts"), range(24)))
    assert sorted(numbers) == list(range(1, 25))
    assert store.next_number("others") == 1


def test_counter_never_exceeds_limit_under_concurrency(store: Store, counted: Callable[..., Any]) -> None:
    def take(_: int) -> bool:
        try:
            store.commit(Add("clusters", 1, limit=7))
        except errors.Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take, range(32))) == 7
    assert counted(store, "clusters") == 7


def test_addition_beyond_limit_conflicts_on_missing_counter(
    store: Store, cluster: Callable[..., Any], counted: Callable[..., Any]
) -> None:
    with pytest.raises(errors.Conflict) as caught:
        store.commit(Create(cluster()), Add("clusters", 3, limit=2))
    assert caught.value.index == 1
    store.commit(Add("clusters", 2, limit=2))
    assert counted(store, "clusters") == 2


def test_counter_never_falls_below_zero(store: Store, cluster: Callable[..., Any], counted: Callable[..., Any]) -> None:
    store.commit(Add("clusters", -3))
    assert counted(store, "clusters") == 0
    store.commit(Add("clusters", 2), Create(cluster()))
    store.commit(Add("clusters", -1))
    assert counted(store, "clusters") == 1
    store.commit(Add("clusters", -5), Remove(Cluster, "clu_1", version=1))
    assert counted(store, "clusters") == 0
    assert store.get(Cluster, "clu_1") is None


def test_subtraction_never_fails_a_commit(store: Store) -> None:
    with pytest.raises(errors.Conflict) as caught:
        store.commit(Add("clusters", -1), Remove(Cluster, "clu_1", version=1))
    assert caught.value.index == 1


def test_subtraction_succeeds_with_lower_limit(store: Store, counted: Callable[..., Any]) -> None:
    store.commit(Add("clusters", 5))
    store.commit(Add("clusters", -1, limit=2))
    assert counted(store, "clusters") == 4


def test_fenced_removal_requires_stored_state(store: Store, cluster: Callable[..., Any]) -> None:
    store.commit(Create(cluster(status="preparing")))
    with pytest.raises(errors.Fenced) as caught:
        store.commit(Create(Name("n", "x")), Remove(Cluster, "clu_1", version=1, fence={"status": "undoing"}))
    assert caught.value.index == 1
    assert store.get(Name, "n") is None
    store.commit(Replace(cluster(status="undoing", version=2)))
    with pytest.raises(errors.Conflict) as second:
        store.commit(Remove(Cluster, "clu_1", version=1, fence={"status": "undoing"}))
    assert not isinstance(second.value, errors.Fenced)
    store.commit(Remove(Cluster, "clu_1", version=2, fence={"status": "undoing"}))
    assert store.get(Cluster, "clu_1") is None
    with pytest.raises(errors.Fenced):
        store.commit(Remove(Cluster, "clu_1", version=2, fence={"status": "undoing"}))


def test_fence_of_removal_requires_version(store: Store) -> None:
    with pytest.raises(ValueError, match="version"):
        store.commit(Remove(Cluster, "clu_1", fence={"status": "undoing"}))
