"""Operations of one subject against the whole list, filtered: page by page the same, wherever the entries end, while
operations are made and change."""

from __future__ import annotations

import os
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from local.testing.memory_store import MemoryRegistry
from stockyard.domain.operation_records import SubjectOperation
from stockyard.domain.records import Fact, Operation
from stockyard.domain.subject_entries import bound_fact
from stockyard.domain.values import ids, times
from stockyard.operations import subject_operations
from stockyard.operations.listing import every
from stockyard.operations.services import Services
from stockyard.operations.subject_operations import operations_of
from stockyard.operations.sweep import subject_entries
from stockyard.ports import Create, Put, Replace, Store
from tests.harness.worlds.memory import FixedClock

SUBJECTS = ("clu_1", "cloud-account", "cloud-account/1", "clu_11")
STEP = st.one_of(
    st.tuples(st.just("make"), st.sampled_from(SUBJECTS)),
    st.tuples(st.just("make"), st.sampled_from(SUBJECTS)),
    st.tuples(st.just("end"), st.sampled_from(("succeeded", "failed"))),
    st.tuples(st.just("wait"), st.sampled_from((0, 1, 200, 400))),
    st.tuples(st.just("sweep"), st.none()),
    st.tuples(st.just("crash of a sweep"), st.none()),
)


class World:
    """A tenant with operations, and its sweep."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.registry = MemoryRegistry()
        self.store: Store = self.registry.store("acme")

    def make(self, subject: str) -> None:
        """Write a new operation."""
        now = times.to_text(self.clock.now())
        name = ids.make(ids.OPERATION, self.clock.now(), self.clock.randomness(10))
        kind = "create_node" if self.clock.randomness(1) < b"\x80" else "delete_node"
        self.store.commit(Create(Operation(name, kind, subject, "running", (), now, now, "ann")))

    def end(self, status: Any) -> None:
        """End the oldest operation that runs."""
        running = next((each for each in every(self.store, Operation) if each.status == "running"), None)
        if running is not None:
            self.store.commit(Replace(replace(running, status=status, version=running.version + 1)))

    def sweep(self) -> None:
        """Have the sweep's turn."""
        services = SimpleNamespace(store=self.store, clock=self.clock, now=lambda: times.to_text(self.clock.now()))
        subject_entries.sweep_entries(cast(Services, services))

    def sweep_in_vain(self) -> None:
        """Have a turn that ends before it has moved its bound."""
        before = self.store.get(Fact, bound_fact(Operation))
        self.sweep()
        if before is not None:
            self.store.commit(Put(before))


def compared(store: Store, limit: int, newest_first: bool, since: str, where: dict[str, Any]) -> None:
    """Walk both lists, and begin behind each item, and behind what is no item."""
    options: dict[str, Any] = {"limit": limit, "newest_first": newest_first, "since": since, "where": where}
    items = store.list(Operation, limit=500).items
    starts = [None, "op_0", "op_Z", *(item.id for item in items), *(item.id[:-1] for item in items[::3])]
    for after in starts:
        there = operations_of(store, after=after, most=None, **options)
        assert (there.items, there.next_id) == _page(store.list(Operation, after=after, **options))
    part = operations_of(store, after=None, most=1, **options)
    walked = [*part.items]
    while part.next_id is not None:
        part = operations_of(store, after=part.next_id, most=1, **options)
        walked += part.items
    every_item = store.list(Operation, **{**options, "limit": 500}).items
    assert walked == every_item


def _page(page: Any) -> tuple[Any, Any]:
    return page.items, page.next_id


@given(
    st.lists(STEP, min_size=10, max_size=30),
    st.integers(1, 4),
    st.sampled_from(({}, {"status": "failed"}, {"status": "running", "kind": "create_node"})),
    st.integers(0, 30),
)
@settings(max_examples=1_000 if "STOCKYARD_SOAK" in os.environ else 40, deadline=None)
def test_operations_of_a_subject_are_the_whole_list_filtered(
    steps: list[tuple[str, Any]], limit: int, filters: dict[str, str], old: int
) -> None:
    there = World()
    with patch.object(subject_entries, "MOST_GIVEN", 3), patch.object(subject_operations, "_READ", 2):
        for step, value in steps:
            if step == "make":
                there.make(value)
            elif step == "end":
                there.end(value)
            elif step == "wait":
                there.clock.advance(value)
            elif step == "sweep":
                there.sweep()
            else:
                there.sweep_in_vain()
            there.clock.advance(0.001)
        items = there.store.list(Operation, limit=500).items
        since = items[old].id if old < len(items) else ""
        for subject in (*SUBJECTS, "", "clu_1/op_0", "x" * 300):
            for newest_first in (False, True):
                compared(there.store, limit, newest_first, since, {"subject": subject, **filters})


def test_a_page_reads_its_entries_and_what_they_name() -> None:
    there = World()
    for number in range(300):
        there.make(SUBJECTS[number % 3])
        there.clock.advance(1)
    there.clock.advance(600)
    there.sweep()
    assert len(list(every(there.store, SubjectOperation))) == 300
    options: dict[str, Any] = {"after": None, "newest_first": True, "since": "", "most": None}
    page = operations_of(there.store, limit=20, where={"subject": "clu_1"}, **options)
    assert (len(page.items), page.read) == (20, 21)
    other = there.registry.store("acme-2")
    other.commit(Put(Fact(bound_fact(Operation), "op_Z", "")))
    assert operations_of(other, limit=20, where={"subject": "clu_1"}, **options).items == []


def test_nothing_is_written_of_operations_where_nothing_has_happened() -> None:
    there = World()
    there.make("clu_1")
    there.clock.advance(600)
    there.sweep()
    fact = there.store.get(Fact, bound_fact(Operation))
    there.clock.advance(600)
    there.sweep()
    assert there.store.get(Fact, bound_fact(Operation)) == fact
