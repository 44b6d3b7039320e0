"""Time of the runner: acts that happen in order, each at its moment, without anybody waiting."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

Act = Callable[[], None]


@dataclass(slots=True)
class Timeline:
    """Acts to come. ``passed`` is told of the seconds that pass before each."""

    moment: datetime = field(default_factory=lambda: datetime(2030, 1, 1, tzinfo=UTC))
    passed: Callable[[float], None] = lambda _: None
    _acts: list[tuple[datetime, int, Act]] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count)

    def now(self) -> datetime:
        """The moment, in UTC."""
        return self.moment

    def after(self, seconds: float, act: Act) -> None:
        """Have ``act`` happen so many seconds from now."""
        heapq.heappush(self._acts, (self.moment + timedelta(seconds=seconds), next(self._numbers), act))

    def run(self, until: Callable[[], bool], seconds: float) -> bool:
        """Let acts happen until ``until`` holds, for so many seconds at most; whether it holds."""
        end = self.moment + timedelta(seconds=seconds)
        while not until():
            if not self._acts or self._acts[0][0] > end:
                self._to(end)
                return until()
            moment, _, act = heapq.heappop(self._acts)
            self._to(moment)
            act()
        return True

    def _to(self, moment: datetime) -> None:
        seconds = (moment - self.moment).total_seconds()
        if seconds > 0:
            self.moment = moment
            self.passed(seconds)
