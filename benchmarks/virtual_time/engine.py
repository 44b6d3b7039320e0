"""A clock that jumps from event to event, and work that sleeps by it: threads of which one runs at a time."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

BEGAN = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
Do = Callable[[], None]


@dataclass(slots=True, eq=False)
class _Work:
    """A thread that has the word, or waits for its turn."""

    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


class Over(BaseException):
    """The time has been closed: work that still sleeps ends where it is."""


class VirtualTime:
    """``now`` is in seconds since the beginning. Only one piece of work runs at a time, so nothing is left to chance
    but what delays draw."""

    def __init__(self) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, Do]] = []
        self._order = itertools.count()
        self._main = threading.Semaphore(0)
        self._own = threading.local()
        self._failure: BaseException | None = None
        self._sleeping: set[_Work] = set()
        self._closed = False

    def moment(self) -> datetime:
        """The time of day."""
        return BEGAN + timedelta(seconds=self.now)

    def after(self, seconds: float, do: Do) -> None:
        """Do it then; it must not sleep."""
        heapq.heappush(self._queue, (self.now + seconds, next(self._order), do))

    def spawn(self, do: Do, seconds: float = 0.0) -> None:
        """Begin work then, which may sleep."""
        work = _Work()

        def body() -> None:
            work.turn.acquire()
            self._own.work = work
            try:
                do()
            except Over:
                pass
            except BaseException as error:  # it belongs to whoever runs the time
                self._failure = self._failure or error
            self._main.release()

        def begin() -> None:
            threading.Thread(target=body, daemon=True).start()
            self._give(work)

        self.after(seconds, begin)

    def sleep(self, seconds: float) -> None:
        """Let this work rest for so long. Outside any work nothing is waited for."""
        work: _Work | None = getattr(self._own, "work", None)
        if work is None or seconds <= 0:
            return
        if self._closed:
            raise Over
        self.after(seconds, lambda: self._give(work))
        self._sleeping.add(work)
        self._main.release()
        work.turn.acquire()
        self._sleeping.discard(work)
        if self._closed:
            raise Over

    def run(self, until: Callable[[], bool], most: float = 3600.0) -> bool:
        """Let time pass until the condition holds: True; or so many seconds, or until nothing is to be done: False."""
        end = self.now + most
        while self._queue and not until():
            if self._queue[0][0] > end:
                return False
            self.now, _, do = heapq.heappop(self._queue)
            do()
            if self._failure is not None:
                raise self._failure
        return until()

    def close(self) -> None:
        """End all work that sleeps."""
        self._closed = True
        while self._sleeping:
            self._give(next(iter(self._sleeping)))

    def _give(self, work: _Work) -> None:
        work.turn.release()
        self._main.acquire()
