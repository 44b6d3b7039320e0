"""Gives the workers of a function to waiting callers in turn, each within a time limit."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class Mortal(Protocol):
    """A worker, which may have died."""

    @property
    def alive(self) -> bool:
        """Whether it can take another invocation."""
        ...

    def kill(self) -> None:
        """Ends the worker."""
        ...


W = TypeVar("W", bound=Mortal)


class Busy(Exception):
    """No worker became free in time."""


class Closed(Exception):
    """The pool is closed."""


@dataclass(slots=True)
class _Waiter(Generic[W]):
    came: threading.Event = field(default_factory=threading.Event)
    worker: W | None = None


class Workers(Generic[W]):
    """At most ``most`` workers, made by ``start``. A free worker is given to the caller that waits longest.

    With some hundreds of callers it would take more time than the work itself to wake all of them for every free
    worker, or to keep calls whose callers have given up.
    """

    def __init__(self, start: Callable[[], W], most: int, patience: float) -> None:
        self._start = start
        self._most = most
        self._patience = patience
        self._idle: list[W] = []
        self._busy: set[W] = set()
        self._waiting: deque[_Waiter[W]] = deque()
        self._lock = threading.Lock()
        self._closed = False

    def take(self) -> W:
        """Takes a worker for one invocation; give it back afterwards. Raises ``Busy`` after ``patience`` seconds, and
        ``Closed``."""
        with self._lock:
            if self._closed:
                raise Closed
            worker = self._idle_or_new()
            if worker is not None:
                return worker
            waiter = _Waiter[W]()
            self._waiting.append(waiter)
        came = waiter.came.wait(self._patience)
        with self._lock:
            if waiter.worker is not None:
                return waiter.worker
            if came or self._closed:
                raise Closed
            self._waiting.remove(waiter)
        raise Busy

    def give_back(self, worker: W) -> None:
        """Gives a worker back after the invocation. A dead worker is replaced when one is needed."""
        with self._lock:
            self._busy.discard(worker)
            if self._closed or not worker.alive:
                worker.kill()
            else:
                self._idle.append(worker)
            if self._waiting and not self._closed and (next_worker := self._idle_or_new()) is not None:
                waiter = self._waiting.popleft()
                waiter.worker = next_worker
                waiter.came.set()

    def close(self) -> None:
        """Ends every worker. Waiting callers get ``Closed``."""
        with self._lock:
            self._closed = True
            workers = [*self._idle, *self._busy]
            self._idle = []
            for waiter in self._waiting:
                waiter.came.set()
            self._waiting.clear()
        for worker in workers:
            worker.kill()

    def _idle_or_new(self) -> W | None:
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                self._busy.add(worker)
                return worker
            worker.kill()
        if len(self._busy) >= self._most:
            return None
        worker = self._start()
        self._busy.add(worker)
        return worker
