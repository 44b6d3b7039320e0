"""Lists of one subject against the whole list, filtered: whatever is written by whichever release while the sweep gives
entries and somebody turns the pages, and although the index is behind the table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pytest
from botocore.client import BaseClient
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.virtual_fleet.table import LeanTable
from benchmarks.virtual_time.stage import ENVIRONMENT, TABLE
from stockyard.adapters.dynamodb import calls
from stockyard.adapters.dynamodb.registry import DynamoRegistry
from stockyard.domain.records import Event
from stockyard.domain.values import ids, times
from stockyard.operations.services import Services
from stockyard.operations.sweep import subject_entries
from stockyard.ports import Create, Store
from tests.harness.worlds.memory import FixedClock

LAG = 100
"""Seconds that the index is behind the table."""
SUBJECTS = ("clu_1", "clu_2", "cloud-account/1")
SUBJECT = st.sampled_from(SUBJECTS)
STEP = st.one_of(
    st.tuples(st.just("write"), SUBJECT, st.booleans()),
    st.tuples(st.just("write"), SUBJECT, st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from((0, 1, 30, 130, 300)), st.none()),
    st.tuples(st.just("sweep"), st.none(), st.none()),
    st.tuples(st.just("turn the page"), st.none(), st.none()),
)


class World:
    """A tenant of a table whose index is late."""

    def __init__(self) -> None:
        self.table = LeanTable(lambda *_: None)
        self.clock = FixedClock()
        self.given_at: dict[str, datetime] = {}
        self.store: Store

    def call(self, client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        """Answer a call, without what has not come to the index yet."""
        answer = self.table.answer(client, operation, parameters)
        for write in parameters.get("TransactItems", ()):
            item = write.get("Put", {}).get("Item", {})
            if "all_pk" in item:
                self.given_at[item["sk"]["S"]] = self.clock.now()
        if "IndexName" in parameters:
            there = self.clock.now() - timedelta(seconds=LAG)
            answer["Items"] = [item for item in answer["Items"] if self.given_at[item["sk"]["S"]] <= there]
        return answer

    def write(self, subject: str, number: int, *, with_entry: bool) -> None:
        """Write an event as this release does, or one of before."""
        now = self.clock.now()
        event = Event(
            ids.make(ids.EVENT, now, self.clock.randomness(10)), "Cluster", subject, number, times.to_text(now), "ann",
            None, "ready", "Rare" if number % 3 == 0 else "Usual", "",
        )  # fmt: skip
        with patch.dict("stockyard.adapters.dynamodb.keys.PREFIXES", clear=not with_entry):
            self.store.commit(Create(event))

    def sweep(self) -> None:
        """Have the sweep's turn."""
        services = SimpleNamespace(store=self.store, clock=self.clock, now=lambda: times.to_text(self.clock.now()))
        subject_entries.sweep_entries(cast(Services, services))

    def expected(self, subject: str, reason: str | None) -> list[str]:
        """Ids of the whole list, filtered."""
        items = self.store.list(Event, limit=1000).items
        return [each.id for each in items if each.subject == subject and reason in (None, each.reason)]


@pytest.fixture(scope="module", autouse=True)
def environment() -> Iterator[None]:
    with patch.dict(os.environ, ENVIRONMENT):
        yield


@contextmanager
def world() -> Iterator[World]:
    there = World()

    def call(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        return there.call(client, operation, parameters)

    with patch.object(BaseClient, "_make_api_call", call):
        there.store = DynamoRegistry(calls.client(), TABLE).store("acme")
        yield there


def listed(store: Store, limit: int, subject: str, reason: str | None, newest_first: bool) -> list[str]:
    """Ids of all pages."""
    where = {"subject": subject, **({"reason": reason} if reason else {})}
    after, names = None, list[str]()
    while True:
        page = store.list(Event, after=after, limit=limit, newest_first=newest_first, where=where)
        names += [event.id for event in page.items]
        if (after := page.next_id) is None:
            return names


@given(st.lists(STEP, min_size=20, max_size=40), st.integers(1, 4), st.sampled_from((None, "Rare")))
@settings(max_examples=1_000 if "STOCKYARD_SOAK" in os.environ else 60, deadline=None)
def test_a_list_of_a_subject_is_the_whole_list_filtered(
    steps: list[tuple[str, Any, Any]], limit: int, reason: str | None
) -> None:
    with world() as there, patch.object(subject_entries, "MOST_GIVEN", 3), patch.object(subject_entries, "MOST", 7):
        walked: list[str] = []
        after: str | None = None
        for number, (step, value, is_new) in enumerate([*steps, ("turn the page", None, None)]):
            if step == "write":
                there.write(value, number, with_entry=is_new)
            elif step == "wait":
                there.clock.advance(value)
            elif step == "sweep":
                there.sweep()
            else:
                # Somebody walks one subject from the first item on while all of this happens.
                where = {"subject": SUBJECTS[0], **({"reason": reason} if reason else {})}
                page = there.store.list(Event, after=after, limit=limit, where=where)
                walked += [event.id for event in page.items]
                after = walked[-1] if walked else None
                assert walked == sorted(walked) == there.expected(SUBJECTS[0], reason)[: len(walked)]
                for newest_first in (False, True):
                    expected = there.expected(SUBJECTS[1], reason)
                    names = listed(there.store, limit, SUBJECTS[1], reason, newest_first)
                    assert names == (expected[::-1] if newest_first else expected)
            there.clock.advance(0.001)


def test_entries_of_a_long_history_are_given_part_by_part_and_looked_at_again() -> None:
    with world() as there, patch.object(subject_entries, "MOST_GIVEN", 100):
        for number in range(350):
            there.write(SUBJECTS[number % 3], number, with_entry=False)
            there.clock.advance(1)
        there.clock.advance(300)
        reads = []
        for _ in range(6):
            there.sweep()
            there.clock.advance(300)
            page = there.store.list(Event, limit=200, where={"subject": SUBJECTS[0]})
            assert [event.id for event in page.items] == there.expected(SUBJECTS[0], None)
            reads.append(page.read)
        assert reads[0] == 350
        assert reads == sorted(reads, reverse=True)
        assert reads[-1] == 117
