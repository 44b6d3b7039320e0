"""The contract of lists of one subject, which go by entries as far as all records have one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.dynamodb.registry import DynamoRegistry
from stockyard.domain.records import AuditRecord, Event, Fact
from stockyard.domain.subject_entries import bound_fact
from stockyard.ports import Create, Put, Store

TIME = "2026-01-31T12:00:00.000Z"
Forget = Callable[[Sequence[str]], None]


@pytest.fixture
def forget(registry: MemoryRegistry | DynamoRegistry) -> Forget:
    """Takes the entries of acme's events away, as if an earlier release had written these."""

    def take(ids: Sequence[str]) -> None:
        for name in ids:
            if isinstance(registry, MemoryRegistry):
                item = registry.table.partitions["T#acme#Event"][name]
                del item["all_pk"], item["all_sk"]
                continue
            registry._client.update_item(
                TableName="stockyard",
                Key={"pk": {"S": "T#acme#Event"}, "sk": {"S": name}},
                UpdateExpression="REMOVE all_pk, all_sk",
            )

    return take


def listed(store: Store, limit: int, **options: Any) -> list[str]:
    """Ids of all pages."""
    ids: list[str] = []
    after: str | None = None
    while True:
        page = store.list(Event, limit=limit, after=after, **options)
        assert page.next_id is None or len(page.items) == limit
        ids += [event.id for event in page.items]
        if page.next_id is None:
            return ids
        after = page.next_id


@pytest.mark.parametrize("bound", [None, "evt_0000", "evt_0009x", "evt_0015x", "evt_0099"])
@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("limit", [1, 3, 50])
def test_pages_of_a_subject_are_the_same_wherever_its_entries_end(
    store: Store, event: Callable[..., Any], forget: Forget, bound: str | None, newest_first: bool, limit: int
) -> None:
    store.commit(*[Create(event(number, f"clu_{number % 3}")) for number in range(24)])
    store.commit(Create(replace(event(24, "clu_1"), reason="Rare")), Create(replace(event(25), reason="Rare")))
    if bound is not None:
        store.commit(Put(Fact(bound_fact(Event), bound, TIME)))
        # Behind the bound nobody needs to have one.
        forget([f"evt_{number:04}" for number in range(26) if f"evt_{number:04}" > bound and number % 2])
    numbers = [*range(1, 24, 3), 24, 25]
    options = {"newest_first": newest_first, "where": {"subject": "clu_1"}}
    step = -1 if newest_first else 1
    assert listed(store, limit, **options) == [f"evt_{number:04}" for number in numbers][::step]
    later = [f"evt_{number:04}" for number in numbers if number >= 10][::step]
    assert listed(store, limit, since="evt_0010", **options) == later
    rare = {**options, "where": {"subject": "clu_1", "reason": "Rare"}}
    assert listed(store, limit, **rare) == ["evt_0024", "evt_0025"][::step]
    assert listed(store, limit, **{**options, "where": {"subject": "clu_9"}}) == []


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("newest_first", [False, True])
def test_a_page_that_ends_early_goes_on_across_the_end_of_the_entries(
    store: Store, event: Callable[..., Any], newest_first: bool, most: int
) -> None:
    store.commit(*[Create(event(number, f"clu_{number % 2}")) for number in range(12)])
    store.commit(Put(Fact(bound_fact(Event), "evt_0005x", TIME)))
    ids: list[str] = []
    after: str | None = None
    for _ in range(40):
        page = store.list(Event, after=after, limit=1, newest_first=newest_first, where={"subject": "clu_1"}, most=most)
        ids += [event.id for event in page.items]
        after = page.next_id
        if after is None:
            break
    expected = [f"evt_{number:04}" for number in range(1, 12, 2)]
    assert (ids, after) == (expected[::-1] if newest_first else expected, None)


def test_nobody_reads_another_tenants_records_about_a_subject_of_the_same_name(
    registry: Any, store: Store, event: Callable[..., Any]
) -> None:
    for tenant, number in (("acme", 1), ("acme-2", 2), ("acm", 3)):
        subjects = ("clu_1", "", "#", "e#Event#clu_1", f"x#T#{tenant}#Event#clu_1")
        events = [event(10 * number + place, subject) for place, subject in enumerate(subjects)]
        registry.store(tenant).commit(*map(Create, events), Put(Fact(bound_fact(Event), "evt_9", TIME)))
    for tenant, number in (("acme", 1), ("acme-2", 2), ("acm", 3)):
        subjects = ("clu_1", "", "#", "e#Event#clu_1", f"x#T#{tenant}#Event#clu_1")
        for place, subject in enumerate(subjects):
            page = registry.store(tenant).list(Event, where={"subject": subject})
            assert [each.id for each in page.items] == [f"evt_{10 * number + place:04}"]
    assert store.list(Event, where={"subject": "x#T#acme-2#Event#clu_1"}).items == []


def test_a_subject_may_be_longer_than_a_key(store: Store, event: Callable[..., Any]) -> None:
    names = ["é" * 2000, "é" * 2001]
    store.commit(*[Create(event(number, name)) for number, name in enumerate(names)])
    store.commit(Put(Fact(bound_fact(Event), "evt_9", TIME)))
    for number, name in enumerate(names):
        assert [each.id for each in store.list(Event, where={"subject": name}).items] == [f"evt_{number:04}"]


def test_what_an_earlier_release_has_written_is_found_and_gets_its_entry(
    store: Store, event: Callable[..., Any], forget: Forget
) -> None:
    store.commit(*[Create(event(number)) for number in range(20)])
    assert store.lacking_entries(Event, since="", until="evt_9").items == []
    forget([f"evt_{number:04}" for number in (3, 7, 11, 15)])
    page = store.lacking_entries(Event, since="evt_0004", until="evt_0012")
    assert ([each.id for each in page.items], page.next_id, page.read) == (["evt_0007", "evt_0011"], None, 9)
    part = store.lacking_entries(Event, since="", until="evt_9", most=6)
    assert ([each.id for each in part.items], part.next_id, part.read) == (["evt_0003"], "evt_0005", 6)
    store.commit(*map(Put, store.lacking_entries(Event, since="", until="evt_9").items))
    assert store.lacking_entries(Event, since="", until="evt_9").items == []
    assert store.lacking_entries(Event, since="evt_8", until="evt_7").items == []
    store.commit(Put(Fact(bound_fact(Event), "evt_9", TIME)))
    assert len(store.list(Event, where={"subject": "clu_1"}).items) == 20


def test_a_page_of_a_subject_looks_at_nothing_of_others(registry: Any, store: Store, event: Callable[..., Any]) -> None:
    for begin in range(0, 500, 100):
        store.commit(*[Create(event(n, "clu_2" if n % 50 == 7 else "clu_1")) for n in range(begin, begin + 100)])
    store.commit(Put(Fact(bound_fact(Event), "evt_0490", TIME)))
    page = store.list(Event, where={"subject": "clu_2"}, limit=20)
    assert len(page.items) == 10
    if isinstance(registry, DynamoRegistry):
        assert page.read == 10 + 10  # and ten behind the bound, whosesoever they are


def test_audit_records_have_entries_too(registry: Any, store: Store) -> None:
    records = [
        AuditRecord(f"aud_{number:04}", TIME, "user:ann", "Change", f"clu_{number % 2}", "done", "r")
        for number in range(40)
    ]
    store.commit(*map(Create, records))
    assert store.lacking_entries(AuditRecord, since="", until="aud_9").items == []
    for bound in ("", "aud_0010x", "aud_9"):
        store.commit(Put(Fact(bound_fact(AuditRecord), bound, TIME)))
        page = store.list(AuditRecord, where={"subject": "clu_1"}, newest_first=True)
        assert page.items == records[:0:-2]
    assert registry.store("acme-2").list(AuditRecord, where={"subject": "clu_1"}).items == []
    if isinstance(registry, DynamoRegistry):
        assert page.read == 20
