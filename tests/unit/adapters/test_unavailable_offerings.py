"""For how long refusals of clouds are remembered."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.unavailable_offerings import StoredUnavailableOfferings
from stockyard.domain.records import Refusal
from stockyard.domain.values import times
from stockyard.ports import Put

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
SMALL = ("small", "spot", "*")


class Remembering:
    """Memory of refusals: each comes at a second, and is remembered for a time from then on."""

    def __init__(self) -> None:
        self.store = MemoryRegistry().platform()
        self.offerings = StoredUnavailableOfferings(self.store)

    def refuse(self, second: int, *, growing: bool = True) -> None:
        self.offerings.remember("scope", [SMALL], "x", BEGIN + timedelta(seconds=second), growing=growing)

    def is_refused(self, second: int) -> bool:
        return self.offerings.refused("scope", BEGIN + timedelta(seconds=second)) == {SMALL}


@pytest.fixture
def remembering() -> Remembering:
    return Remembering()


@pytest.mark.parametrize(
    ("seconds", "forgotten"),
    [
        ([0], 180),
        ([0, 1, 2], 182),
        ([0, 200], 200 + 360),
        ([0, 200, 201], 201 + 360),
        ([0, 200, 600, 1400], 1400 + 540),
        ([0, 400], 400 + 180),
    ],
    ids=["once", "launched together", "again", "again, together", "at most nine minutes", "long after"],
)
def test_what_is_refused_again_soon_is_remembered_twice_as_long(
    remembering: Remembering, seconds: list[int], forgotten: int
) -> None:
    for second in seconds:
        remembering.refuse(second)
    assert [remembering.is_refused(forgotten - 1), remembering.is_refused(forgotten)] == [True, False]


def test_what_has_no_capacity_is_remembered_equally_long_each_time(remembering: Remembering) -> None:
    for second in (0, 200, 400):
        remembering.refuse(second, growing=False)
    assert [remembering.is_refused(579), remembering.is_refused(580)] == [True, False]


def test_refusals_that_earlier_releases_wrote_count_until_they_expire(remembering: Remembering) -> None:
    begin = times.epoch(BEGIN)
    remembering.store.commit(Put(Refusal("scope/small/spot/*", times.to_text(BEGIN), begin + 960, "x")))
    assert [remembering.is_refused(959), remembering.is_refused(960)] == [True, False]
    remembering.refuse(700)
    assert [remembering.is_refused(700 + 959), remembering.is_refused(700 + 960)] == [True, False]
