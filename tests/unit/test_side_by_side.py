"""Calls side by side: their order, their number, and what is left of them after an error."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from functools import partial

import pytest

from stockyard import side_by_side
from stockyard.errors import VendorTimeout

WHOSE: ContextVar[str] = ContextVar("WHOSE", default="nobody")


def test_results_come_in_the_order_of_the_work_at_most_so_many_at_once() -> None:
    lock, running, most = threading.Lock(), [0], [0]
    all_lanes = threading.Barrier(side_by_side.LANES, timeout=30)

    def work(number: int) -> int:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        all_lanes.wait()
        with lock:
            running[0] -= 1
        return number

    count = 2 * side_by_side.LANES
    assert side_by_side.results([partial(work, number) for number in range(count)]) == list(range(count))
    assert most == [side_by_side.LANES]


def test_first_failure_is_raised_when_nothing_is_at_work_any_more() -> None:
    starts, ends = list[int](), list[int]()
    others_wait = threading.Event()

    def work(number: int) -> None:
        starts.append(number)
        if number in (1, 2):
            raise VendorTimeout(f"number {number}")
        others_wait.wait(0.05)
        ends.append(number)

    with pytest.raises(VendorTimeout, match="number 1"):
        side_by_side.results([partial(work, number) for number in range(200)])
    assert sorted(starts) == sorted([*ends, 1, 2])
    assert len(starts) < 200, "what had not begun is left"


def test_work_has_the_context_of_who_waits_for_it() -> None:
    WHOSE.set("acme")
    assert side_by_side.results([WHOSE.get] * 3) == ["acme"] * 3


def test_one_lane_does_all_in_its_own_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "LANES", 1)
    assert set(side_by_side.results([threading.get_ident] * 3)) == {threading.get_ident()}
