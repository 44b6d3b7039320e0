"""Callers get workers in turn; a caller that waits too long is refused and gets no worker later."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from local.functions.workers import Busy, Closed, Workers

WAIT = 30.0
"""Seconds after which a wait fails the test."""


class Hand:
    """A worker that a test can let die."""

    def __init__(self) -> None:
        self.alive = True

    def kill(self) -> None:
        self.alive = False


def _until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.001)


def _waiting(workers: Workers[Hand], count: int) -> None:
    _until(lambda: len(workers._waiting) == count)


def test_the_longest_waiting_caller_gets_the_next_worker() -> None:
    workers = Workers(Hand, 1, WAIT)
    hand = workers.take()
    with ThreadPoolExecutor(3) as pool:
        turns: list[Future[Hand]] = []
        for count in range(1, 4):
            turns.append(pool.submit(workers.take))
            _waiting(workers, count)
        for turn in turns:
            workers.give_back(hand)
            assert turn.result(WAIT) is hand
    workers.give_back(hand)
    assert workers.take() is hand, "it is kept"


def test_the_number_of_workers_never_exceeds_the_limit() -> None:
    workers = Workers(Hand, 3, 0.01)
    assert len({id(workers.take()) for _ in range(3)}) == 3
    with pytest.raises(Busy):
        workers.take()


def test_a_refused_caller_gets_no_worker_later() -> None:
    workers = Workers(Hand, 1, 0.01)
    hand = workers.take()
    with pytest.raises(Busy):
        workers.take()
    workers.give_back(hand)
    assert workers.take() is hand


def test_a_dead_worker_is_replaced_for_a_waiting_caller() -> None:
    workers = Workers(Hand, 1, WAIT)
    hand = workers.take()
    with ThreadPoolExecutor(1) as pool:
        turn = pool.submit(workers.take)
        _waiting(workers, 1)
        hand.kill()
        workers.give_back(hand)
        next_hand = turn.result(WAIT)
    assert next_hand is not hand
    workers.give_back(next_hand)
    next_hand.kill()
    assert workers.take() is not next_hand, "also one that died while it was idle"


def test_close_ends_all_workers_and_refuses_waiting_callers() -> None:
    workers = Workers(Hand, 2, WAIT)
    busy, idle = workers.take(), workers.take()
    workers.give_back(idle)
    again = workers.take()
    waiter_ended = threading.Event()

    def wait() -> None:
        with pytest.raises(Closed):
            workers.take()
        waiter_ended.set()

    thread = threading.Thread(target=wait)
    thread.start()
    _waiting(workers, 1)
    workers.close()
    assert waiter_ended.wait(WAIT)
    thread.join(WAIT)
    assert not busy.alive
    assert not again.alive
    with pytest.raises(Closed):
        workers.take()
    workers.give_back(busy)


def test_a_caller_that_times_out_during_close_gets_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers(Hand, 1, WAIT)
    workers.take()

    def wait(_event: threading.Event, _seconds: float) -> bool:
        workers.close()
        return False

    monkeypatch.setattr(threading.Event, "wait", wait)
    with pytest.raises(Closed):
        workers.take()
