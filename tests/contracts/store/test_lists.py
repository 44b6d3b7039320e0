"""The contract of ``ports.Store.list``."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from stockyard.domain.records import (
    Cluster,
    Counter,
    Event,
    Fact,
)
from stockyard.ports import Add, Create, Store

TIME = "2026-01-31T12:00:00.000Z"
NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


# --- lists ------------------------------------------------------------------------------------------------------------


def walk(store: Store, kind: type[Any], limit: int, **options: Any) -> list[str]:
    ids: list[str] = []
    after: str | None = None
    while True:
        page = store.list(kind, limit=limit, after=after, **options)
        assert len(page.items) <= limit
        assert page.next_id is None or len(page.items) == limit
        ids += [record.id for record in page.items]
        if page.next_id is None:
            return ids
        after = page.next_id


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("limit", [1, 3, 10, 11])
def test_list_pages_cover_everything_once_in_order(
    store: Store, limit: int, newest_first: bool, event: Callable[..., Any]
) -> None:
    numbers = list(range(10))
    random.Random(7).shuffle(numbers)
    store.commit(*[Create(event(number)) for number in numbers])
    ids = [f"evt_{number:04}" for number in range(10)]
    assert walk(store, Event, limit, newest_first=newest_first) == (ids[::-1] if newest_first else ids)


@pytest.mark.parametrize("newest_first", [False, True])
def test_list_pages_are_full_despite_filter(store: Store, newest_first: bool, event: Callable[..., Any]) -> None:
    for start in range(0, 500, 100):
        subjects = {number: "clu_2" if number % 50 == 0 else "clu_1" for number in range(start, start + 100)}
        store.commit(*[Create(event(number, subject)) for number, subject in subjects.items()])
    ids = [f"evt_{number:04}" for number in range(0, 500, 50)]
    ids_read = walk(store, Event, 3, where={"subject": "clu_2"}, newest_first=newest_first)
    assert ids_read == (ids[::-1] if newest_first else ids)
    assert walk(store, Event, 3, where={"subject": "clu_3"}) == []


@pytest.mark.parametrize("newest_first", [False, True])
def test_list_by_prefix(store: Store, newest_first: bool) -> None:
    ids = ["clu_1/a", "clu_1/b", "clu_1/c", "clu_10/a", "clu_2/a", "clu_1"]
    store.commit(*[Create(Fact(name, "x", TIME)) for name in ids])
    expected = ["clu_1/a", "clu_1/b", "clu_1/c"]
    matches = walk(store, Fact, 2, prefix="clu_1/", newest_first=newest_first)
    assert matches == (expected[::-1] if newest_first else expected)
    behind = store.list(Fact, prefix="clu_1/", after="clu_2/a", newest_first=False)
    before = store.list(Fact, prefix="clu_1/", after="clu_0", newest_first=True)
    assert (behind.items, before.items, before.next_id) == ([], [], None)


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("limit", [1, 3, 20])
def test_list_since_an_id_leaves_out_what_is_older(
    store: Store, limit: int, newest_first: bool, event: Callable[..., Any]
) -> None:
    store.commit(*[Create(event(number)) for number in range(10)])
    ids = [f"evt_{number:04}" for number in range(6, 10)]
    ids_read = walk(store, Event, limit, newest_first=newest_first, since="evt_0006")
    assert ids_read == (ids[::-1] if newest_first else ids)
    assert walk(store, Event, limit, newest_first=newest_first, since="evt_0005x") == ids_read
    assert walk(store, Event, limit, newest_first=newest_first, since="evt_1") == []
    nothing = store.list(Event, after="", newest_first=True, since="evt_0006")
    assert (nothing.items, nothing.next_id) == ([], None)


def test_list_where_matches_none_and_several_fields(store: Store, cluster: Callable[..., Any]) -> None:
    store.commit(
        Create(cluster("clu_1", phase="network")), Create(cluster("clu_2")), Create(cluster("clu_3", name="x"))
    )
    assert walk(store, Cluster, 5, where={"phase": None}) == ["clu_2", "clu_3"]
    assert walk(store, Cluster, 5, where={"phase": None, "name": "x"}) == ["clu_3"]
    assert walk(store, Cluster, 5, where={"cloud_account_id": 1, "tags": {}}) == ["clu_1", "clu_2", "clu_3"]


def test_list_without_records_is_empty(store: Store) -> None:
    page = store.list(Cluster)
    assert (page.items, page.next_id) == ([], None)


# --- several by their ids ---------------------------------------------------------------------------------------------


def test_records_are_read_together_in_the_order_of_their_ids(store: Store) -> None:
    facts = [Fact(f"f-{number:03}", str(number), TIME) for number in range(250)]
    for fact in facts:
        store.commit(Create(fact))
    shuffled = [fact.id for fact in facts]
    random.Random(1).shuffle(shuffled)
    records = store.get_all(Fact, [*shuffled[:125], "f-none", *shuffled[125:]])
    assert [record.id for record in records] == shuffled
    assert {record.id: record for record in records} == {fact.id: fact for fact in facts}
    assert store.get_all(Fact, []) == []


def test_nobody_reads_another_tenants_records_together(registry: Any, store: Store) -> None:
    store.commit(Create(Fact("f-1", "secret", TIME)))
    globex = registry.store("globex")
    assert globex.get_all(Fact, ["f-1"]) == []
    assert globex.get_together((Fact, "f-1"), (Counter, "f-1")) == (None, None)


def test_records_of_several_kinds_are_read_together_by_their_ids(store: Store) -> None:
    fact, number = Fact("f-1", "v", TIME), Counter("f-1", 3)
    store.commit(Create(fact))
    store.commit(Add(number.id, number.value))
    assert store.get_together((Counter, "f-1"), (Fact, "f-1")) == (number, fact)
    assert store.get_together((Fact, "f-2"), (Fact, "f-1"), (Counter, "f-2")) == (None, fact, None)


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_page_ends_when_enough_was_looked_at(store: Store, newest_first: bool, event: Callable[..., Any]) -> None:
    for start in range(0, 600, 100):
        rare = {number: "clu_2" if number in (3, 596) else "clu_1" for number in range(start, start + 100)}
        store.commit(*[Create(event(number, subject)) for number, subject in rare.items()])
    after, ids, pages = None, list[str](), 0
    while pages == 0 or after is not None:
        page = store.list(
            Event,
            limit=5,
            after=after,
            where={"subject": "clu_2"},
            newest_first=newest_first,
            most=100,
            consistent=False,
        )
        assert 0 < page.read <= 300
        ids += [record.id for record in page.items]
        after, pages = page.next_id, pages + 1
    assert ids == (["evt_0596", "evt_0003"] if newest_first else ["evt_0003", "evt_0596"])
    assert pages > 1
