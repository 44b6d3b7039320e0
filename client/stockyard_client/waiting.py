"""Waiting by polling: for an operation to end, for pools to have their nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from stockyard_client.errors import OperationFailed, PoolsNotReady, WaitTimedOut
from stockyard_client.models import Operation

FIRST_INTERVAL = 1.0
LONGEST_INTERVAL = 5.0
_GROWTH = 1.5
T = TypeVar("T")


def wait_operation(
    read: Callable[[], Operation],
    *,
    timeout: float | None,
    sleep: Callable[[float], None],
    clock: Callable[[], float],
    on_change: Callable[[Operation], None] | None = None,
    interval: float = FIRST_INTERVAL,
) -> Operation:
    """The operation once it has succeeded; ``timeout`` and ``interval`` are seconds, no ``timeout`` means for ever.

    ``on_change`` sees the operation at first and whenever it differs. The pause grows to 5 s while nothing changes.
    Raises :class:`OperationFailed` and :class:`WaitTimedOut`.
    """
    started = clock()
    pause = interval
    last: Operation | None = None
    while True:
        now = read()
        if now != last:
            pause = interval
            if on_change:
                on_change(now)
        else:
            pause = min(pause * _GROWTH, max(LONGEST_INTERVAL, interval))
        last = now
        if now.done:
            if now.status != "succeeded":
                raise OperationFailed(now)
            return now
        if timeout is not None:
            remaining = timeout - (clock() - started)
            if remaining <= 0:
                raise WaitTimedOut(now, timeout)
            sleep(min(pause, remaining))
        else:
            sleep(pause)


def wait_until(
    read: Callable[[], T],
    done: Callable[[T], bool],
    describe: Callable[[T], str],
    name: str,
    *,
    timeout: float | None,
    sleep: Callable[[float], None],
    clock: Callable[[], float],
    on_change: Callable[[str], None] | None = None,
) -> T:
    """What is read once it is ``done``; ``timeout`` is in seconds, without one for ever.

    ``on_change`` sees at first and whenever it differs what ``describe`` says, which the error says too.
    Raises :class:`PoolsNotReady`.
    """
    started = clock()
    pause = FIRST_INTERVAL
    last: str | None = None
    while True:
        now = read()
        text = describe(now)
        pause = FIRST_INTERVAL if text != last else min(pause * _GROWTH, LONGEST_INTERVAL)
        if text != last and on_change:
            on_change(text)
        last = text
        if done(now):
            return now
        if timeout is not None:
            remaining = timeout - (clock() - started)
            if remaining <= 0:
                raise PoolsNotReady(name, text, timeout)
            sleep(min(pause, remaining))
        else:
            sleep(pause)
