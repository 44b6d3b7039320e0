"""Waiting: for an operation to end, for pools to have their nodes. The API tells of news where it can wait for it, else
it is asked again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from stockyard_client.errors import OperationFailed, PoolsNotReady, WaitTimedOut
from stockyard_client.models import Operation
from stockyard_client.transport import LONGEST_WAIT

FIRST_INTERVAL = 1.0
LONGEST_INTERVAL = 5.0
BREATH = 0.25
"""Seconds after a change until the next look: what changes quickly is told together."""
_GROWTH = 1.5
T = TypeVar("T")
Read = Callable[[T | None, int], T]
"""Reads a record again: gets what was read before, and for how many seconds the API may wait until that is outdated."""


def wait_operation(
    read: Read[Operation],
    *,
    timeout: float | None,
    sleep: Callable[[float], None],
    clock: Callable[[], float],
    on_change: Callable[[Operation], None] | None = None,
    interval: float = FIRST_INTERVAL,
) -> Operation:
    """The operation once it has succeeded; ``timeout`` and ``interval`` are seconds, no ``timeout`` means for ever.

    ``on_change`` sees the operation at first and whenever it differs. Where the API does not wait for news, the pause
    between two looks grows from ``interval`` to 5 s while nothing changes.
    Raises :class:`OperationFailed` and :class:`WaitTimedOut`.
    """
    looks = _Looks(read, timeout, sleep, clock, interval)
    last: Operation | None = None
    while True:
        now = looks.next()
        if now != last and on_change:
            on_change(now)
        last = now
        if now.done:
            if now.status != "succeeded":
                raise OperationFailed(now)
            return now
        if looks.is_over():
            raise WaitTimedOut(now, timeout or 0.0)


def wait_until(
    read: Read[T],
    done: Callable[[T], bool],
    describe: Callable[[T], str],
    name: str,
    *,
    timeout: float | None,
    sleep: Callable[[float], None],
    clock: Callable[[], float],
    on_change: Callable[[str], None] | None = None,
) -> T:
    """Read until the answer is ``done``, and return that answer; ``timeout`` is in seconds, without one for ever.

    ``on_change`` sees at first and whenever it differs what ``describe`` says, which the error says too.
    Raises :class:`PoolsNotReady`.
    """
    looks = _Looks(read, timeout, sleep, clock, FIRST_INTERVAL)
    last: str | None = None
    while True:
        now = looks.next()
        text = describe(now)
        if text != last and on_change:
            on_change(text)
        last = text
        if done(now):
            return now
        if looks.is_over():
            raise PoolsNotReady(name, text, timeout or 0.0)


class _Looks(Generic[T]):
    """One look after the other, within a time limit: each waits for news, or a pause comes before the next one."""

    def __init__(
        self,
        read: Read[T],
        timeout: float | None,
        sleep: Callable[[float], None],
        clock: Callable[[], float],
        interval: float,
    ) -> None:
        self._read, self._timeout, self._sleep, self._clock = read, timeout, sleep, clock
        self._interval = self._pause = interval
        self._started = clock()
        self._earlier: T | None = None
        self._changed = False

    def is_over(self) -> bool:
        """Whether the time is up."""
        return self._remaining <= 0

    @property
    def _remaining(self) -> float:
        return LONGEST_WAIT if self._timeout is None else self._timeout - (self._clock() - self._started)

    def next(self) -> T:
        """Read once more, after news or a pause."""
        if self._earlier is None:
            self._earlier = self._read(None, 0)
            return self._earlier
        if self._changed and self._remaining > 0:
            self._sleep(min(BREATH, self._remaining))
        wait = max(0, min(LONGEST_WAIT, int(self._remaining)))
        began = self._clock()
        record = self._read(self._earlier, wait)
        self._changed = record != self._earlier
        if self._changed:
            self._pause = self._interval
        elif self._clock() - began < max(1, wait) * 0.5:
            # an API that does not wait
            if self._remaining > 0:
                self._sleep(min(self._pause, self._remaining))
            self._pause = min(self._pause * _GROWTH, max(LONGEST_INTERVAL, self._interval))
        self._earlier = record
        return record
