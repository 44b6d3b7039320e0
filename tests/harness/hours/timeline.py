"""Time in simulated hours: what happens when, in one thread, with the workflows that are under way."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from local.functions.invocation import Invocation
from tests.harness import walk
from tests.harness.worlds.memory import FixedClock
from tests.harness.worlds.states import Execution, States

MINUTE = timedelta(minutes=1)


def tick(moment: datetime, number: int) -> datetime:
    """First time after the moment at which the minute's schedule comes. It comes at another second in each trace."""
    second = 7 * number % 60
    tick = moment.replace(second=second, microsecond=0)
    return tick if tick > moment else tick + MINUTE


class Timeline:
    """Actions at moments, and timers by name, each of which has one moment. ``act`` runs a function of a workflow."""

    def __init__(self, clock: FixedClock, act: Callable[[str, Any], Invocation], seed: int) -> None:
        self.clock = clock
        self.states = States(clock, act, seed=seed)
        self._heap: list[tuple[datetime, int, Callable[[], None]]] = []
        self._order = count()
        self._timers: dict[str, datetime] = {}

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something so many seconds from now."""
        self.at(self.clock.now() + timedelta(seconds=seconds), action)

    def at(self, moment: datetime, action: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (moment, next(self._order), action))

    def pop(self) -> tuple[datetime, str, Callable[[], None]] | None:
        """Next entry of the timeline: when, and the name of a timer or else an action. None when nothing comes any
        more."""
        name = min(self._timers, key=lambda name: self._timers[name], default="")
        if name and (not self._heap or self._timers[name] <= self._heap[0][0]):
            return self._timers.pop(name), name, lambda: None
        if not self._heap:
            return None
        moment, _, action = heapq.heappop(self._heap)
        return moment, "", action

    def moment_of(self, name: str) -> datetime | None:
        """End of a timer; None when it does not run."""
        return self._timers.get(name)

    def timer(self, name: str, moment: datetime | None) -> None:
        """Set a timer; None stops it."""
        if moment is None:
            self._timers.pop(name, None)
        else:
            self._timers[name] = max(moment, self.clock.now())

    def soon(self, name: str, seconds: float) -> None:
        """Have a timer end within so many seconds."""
        moment = self.clock.now() + timedelta(seconds=seconds)
        self._timers[name] = min(moment, self._timers.get(name, moment))

    def start(self, name: str, number: str, value: Mapping[str, Any]) -> None:
        """Start an execution of a workflow."""
        if name not in self.states.documents:
            self.states.create(name, walk.current(name))
        execution = self.states.start(name, number, value)
        self._carry_on(execution)

    def _carry_on(self, execution: Execution) -> None:
        while execution.running and execution.wake is not None and execution.wake <= self.clock.now():
            self.states.carry_on(execution)
        if execution.running and execution.wake is not None:
            self.at(execution.wake, lambda: self._carry_on(execution))
        else:
            del self.states.executions[(execution.machine, execution.name)]
