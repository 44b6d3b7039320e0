"""Workers are handed over in turn; who waits too long is refused, and disturbs nobody afterwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from local.workers import Busy, Closed, Workers

WAIT = 30.0
"""Seconds after which a wait is a failure."""


class Hand:
    """A worker that can be told to die."""

    def __init__(self) -> None:
        self.alive = True

    def kill(self) -> None:
        self.alive = False


def _until(what: Callable[[], bool]) -> None:
    ends = time.monotonic() + WAIT
    while not what():
        assert time.monotonic() < ends
        time.sleep(0.001)


def _waiting(workers: Workers[Hand], count: int) -> None:
    _until(lambda: len(workers._waiting) == count)


def test_who_waits_longest_comes_first() -> None:
    workers = Workers(Hand, 1, WAIT)
    mine = workers.take()
    with ThreadPoolExecutor(3) as pool:
        turns: list[Future[Hand]] = []
        for count in range(1, 4):
            turns.append(pool.submit(workers.take))
            _waiting(workers, count)
        for turn in turns:
            workers.give_back(mine)
            assert turn.result(WAIT) is mine
    workers.give_back(mine)
    assert workers.take() is mine, "it is kept"


def test_there_are_as_many_as_may_be() -> None:
    workers = Workers(Hand, 3, 0.01)
    assert len({id(workers.take()) for _ in range(3)}) == 3
    with pytest.raises(Busy):
        workers.take()


def test_who_was_refused_is_handed_nothing() -> None:
    workers = Workers(Hand, 1, 0.01)
    mine = workers.take()
    with pytest.raises(Busy):
        workers.take()
    workers.give_back(mine)
    assert workers.take() is mine


def test_a_worker_that_died_is_replaced_for_who_waits() -> None:
    workers = Workers(Hand, 1, WAIT)
    mine = workers.take()
    with ThreadPoolExecutor(1) as pool:
        turn = pool.submit(workers.take)
        _waiting(workers, 1)
        mine.kill()
        workers.give_back(mine)
        other = turn.result(WAIT)
    assert other is not mine
    workers.give_back(other)
    other.kill()
    assert workers.take() is not other, "also one that died while it was idle"


def test_at_the_end_all_are_ended_and_who_waits_is_told() -> None:
    workers = Workers(Hand, 2, WAIT)
    busy, idle = workers.take(), workers.take()
    workers.give_back(idle)
    again = workers.take()
    told = threading.Event()

    def wait() -> None:
        with pytest.raises(Closed):
            workers.take()
        told.set()

    thread = threading.Thread(target=wait)
    thread.start()
    _waiting(workers, 1)
    workers.close()
    assert told.wait(WAIT)
    thread.join(WAIT)
    assert not busy.alive
    assert not again.alive
    with pytest.raises(Closed):
        workers.take()
    workers.give_back(busy)


def test_who_gives_up_in_the_moment_of_the_end_is_told_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers(Hand, 1, WAIT)
    workers.take()

    def wait(_event: threading.Event, _seconds: float) -> bool:
        workers.close()
        return False

    monkeypatch.setattr(threading.Event, "wait", wait)
    with pytest.raises(Closed):
        workers.take()
