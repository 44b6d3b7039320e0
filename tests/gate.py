"""The tests' own budget: how long a run of all of them may take from its start to its end.

A run says what took longest, and only one that is too long as a whole fails: what a single test takes is chance on a
machine that does other things besides. The limit is a number of seconds; who has a slower machine gives another one.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.distribution import on_real, unit

REAL_SECONDS = 900.0
"""What tests on real control planes may take besides: they run only where one is built."""
LISTED = 10


@dataclass(slots=True)
class Gate:
    """Adds up what the tests report, from its making on. ``limit``: seconds of the whole run."""

    limit: float
    by_test: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Without fixtures, which may be shared."""
    by_unit: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    clock: Callable[[], float] = time.monotonic
    began: float = 0.0

    def __post_init__(self) -> None:
        self.began = self.clock()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test has ended."""
        self.by_unit[unit(report.nodeid)] += report.duration
        if report.when == "call":
            self.by_test[report.nodeid] += report.duration

    def lines(self) -> list[str]:
        """Lines at the end of a run."""
        slowest = sorted(self.by_unit.items(), key=lambda item: -item[1])[:LISTED]
        tests = sorted(self.by_test.items(), key=lambda item: -item[1])[:LISTED]
        seconds, of_workers = self.clock() - self.began, sum(self.by_unit.values())
        total = f"{seconds:.0f} s, {of_workers:.0f} of all workers; the limit is {self.limit:.0f}"
        return [total, *(f"{seconds:6.1f} s  {name}" for name, seconds in (*slowest, *tests))]

    def faults(self) -> list[str]:
        """Units and tests that took too long."""
        seconds = self.clock() - self.began
        real = sum(elapsed for name, elapsed in self.by_unit.items() if on_real(name))
        limit = self.limit + min(real, REAL_SECONDS)
        return [f"all tests took {seconds:.0f} s, over {limit:.0f}"] if seconds > limit else []
