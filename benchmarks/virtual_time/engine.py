"""A clock that jumps from event to event, and work that sleeps by it: threads of which one runs at a time."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

BEGAN = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
Do = Callable[[], None]


def _closed_gate() -> threading.Lock:
    """A lock that is held: who acquires it waits until another thread releases it, once for each time."""
    gate = threading.Lock()
    gate.acquire()
    return gate


@dataclass(slots=True, eq=False)
class _Work:
    """A thread that has the word, or waits for its turn or for something to do."""

    turn: threading.Lock = field(default_factory=_closed_gate)
    do: Do | None = None


def _never() -> bool:
    return False


class Over(BaseException):
    """The time has been closed: work that still sleeps ends where it is."""


class VirtualTime:
    """``now`` is in seconds since the beginning. Only one piece of work runs at a time, so nothing is left to chance
    but what delays draw."""

    def __init__(self) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, Do | None, _Work | bool]] = []
        """When, in which order, and what: something to do, with True as work, or work that wakes up."""
        self._order = itertools.count()
        self._main = _closed_gate()
        self._own = threading.local()
        self._failure: BaseException | None = None
        self._sleeping: set[_Work] = set()
        self._idle: list[_Work] = []
        self._undisturbed = 0.0
        """Up to this moment nothing is asked between two events."""
        self._closed = False
        self._end, self._until = 0.0, _never
        """Up to when, and until what, the time is run."""

    def moment(self) -> datetime:
        """The time of day."""
        return BEGAN + timedelta(seconds=self.now)

    def after(self, seconds: float, do: Do) -> None:
        """Do it then; it must not sleep."""
        self._later(seconds, do, False)

    def spawn(self, do: Do, seconds: float = 0.0) -> None:
        """Begin work then, which may sleep."""
        self._later(seconds, do, True)

    def _later(self, seconds: float, do: Do | None, work: _Work | bool) -> None:
        heapq.heappush(self._queue, (self.now + seconds, next(self._order), do, work))

    def _hired(self) -> _Work:
        """A new thread, which does one piece of work after the other."""
        work = _Work()

        def body() -> None:
            self._own.work = work
            work.turn.acquire()
            while work.do is not None:
                try:
                    work.do()
                except Over:
                    pass
                except BaseException as error:  # it belongs to whoever runs the time
                    self._failure = self._failure or error
                work.do = None
                self._idle.append(work)
                self._pass_word(work)

        threading.Thread(target=body, daemon=True).start()
        return work

    def sleep(self, seconds: float) -> None:
        """Let this work rest for so long. Outside any work nothing is waited for."""
        work: _Work | None = getattr(self._own, "work", None)
        if work is None or seconds <= 0:
            return
        if self._closed:
            raise Over
        if self.now + seconds < min(self._undisturbed, self._queue[0][0] if self._queue else self._undisturbed):
            self.now += seconds  # nobody else has anything to do before
            return
        self._later(seconds, None, work)
        self._wait_for_turn(work)

    def _wait_for_turn(self, work: _Work) -> None:
        self._sleeping.add(work)
        self._pass_word(work)
        self._sleeping.discard(work)
        if self._closed:
            raise Over

    def _pass_word(self, work: _Work) -> None:
        """Let what comes next have the word, and wait for it. Work hands it on to work: to go through the thread that
        runs the time would change threads twice."""
        following = None if self._closed or self._failure is not None or not self._goes_on() else self._following()
        if following is not work:
            (self._main if following is None else following.turn).release()
            work.turn.acquire()

    def _goes_on(self) -> bool:
        return bool(self._queue) and self._queue[0][0] <= self._end and not self._until()

    def _following(self) -> _Work | None:
        """The work that is next, which is none where something else is to be done first."""
        if self._queue[0][3] is False:
            return None
        self.now, _, do, work = heapq.heappop(self._queue)
        if not isinstance(work, _Work):
            work = self._idle.pop() if self._idle else self._hired()
            work.do = do
        return work

    def pass_by(self, seconds: float) -> None:
        """Let so many seconds pass, whatever happens."""
        self._undisturbed = self.now + seconds
        self.run(lambda: False, seconds)
        self._undisturbed = 0.0

    def together(self, works: Sequence[Do]) -> None:
        """Do these at once and wait for all, within work. Outside any work they are done one after the other."""
        work: _Work | None = getattr(self._own, "work", None)
        if work is None or not works:
            for do in works:
                do()
            return
        remaining = [len(works)]

        def run_and_count(do: Do) -> None:
            do()
            remaining[0] -= 1
            if not remaining[0]:
                self._later(0.0, None, work)

        for do in works:
            self.spawn(partial(run_and_count, do))
        self._wait_for_turn(work)

    def run(self, until: Callable[[], bool], most: float = 3600.0) -> bool:
        """Let time pass until the condition holds: True; or so many seconds, or until nothing is to be done: False."""
        self._end, self._until = self.now + most, until
        while self._goes_on():
            work = self._following()
            if work is not None:
                self._give(work)
            else:
                self.now, _, do, _ = heapq.heappop(self._queue)
                if do is not None:
                    do()
            if self._failure is not None:
                raise self._failure
        return until()

    def forget(self) -> None:
        """Do nothing of what was to be done later."""
        self._queue.clear()

    def close(self) -> None:
        """End all work that sleeps, and the threads that have none."""
        self._closed = True
        while self._sleeping:
            self._give(next(iter(self._sleeping)))
        for work in self._idle:
            work.turn.release()
        self._idle.clear()

    def _give(self, work: _Work) -> None:
        work.turn.release()
        self._main.acquire()
