"""The tests' own budget: how long a run of all of them may take from its start to its end.

A run says what took longest, and only one that is too long as a whole fails: what a single test takes is chance on a
machine that does other things besides. On such a machine, or on a slower one, everything takes longer. So the limit is
stretched by the share of the cores that others had, and by how much longer a fixed piece of Python takes than where the
limit was set.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.distribution import on_real, unit

RUN_SECONDS = 780.0
"""Above the ten minutes that a run is to take: tests of highly available clusters have brought it to fourteen on two
cores, and it has come down since; decision 89 says how."""
REAL_SECONDS = 240.0
"""What tests on real control planes may take besides: they run only where one is built."""
LISTED = 10
LONGEST_STRETCH = 5.0
SAMPLED = 500
"""Every so many reports the machine's speed is measured: at the start and the end it may be another than between."""
PIECE = 400_000
"""Rounds of the fixed piece of Python."""
PIECE_SECONDS = 0.01
"""What it took where the limit was set."""
PROCESSES = 6
_TIMED = (
    f"timeit.repeat('total += number & 7', 'total, number = 0, 5', timer=time.process_time, repeat=3, number={PIECE})"
)
_PIECE = (sys.executable, "-I", "-c", f"import time, timeit; print(min({_TIMED}))")


@dataclass(slots=True)
class Gate:
    """Adds up what the tests report, from its making on."""

    by_test: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Without fixtures, which may be shared."""
    by_unit: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    clock: Callable[[], float] = time.monotonic
    began: float = 0.0
    busy: float = 0.0
    slowness: float = 1.0
    meanwhile: list[float] = field(default_factory=list)
    """How slow the machine was in the course of the run."""
    reports: int = 0

    def __post_init__(self) -> None:
        self.began, self.busy, self.slowness = self.clock(), busy_seconds(), slowness(piece_seconds())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test has ended."""
        self.reports += 1
        if self.reports % SAMPLED == 0:
            self.meanwhile.append(slowness(piece_seconds()))
        self.by_unit[unit(report.nodeid)] += report.duration
        if report.when == "call":
            self.by_test[report.nodeid] += report.duration

    def stretch(self) -> float:
        """How much longer things took because of others and of the machine itself, at least 1."""
        own_seconds = sum(
            sum(resource.getrusage(scope)[:2]) for scope in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        room = (self.clock() - self.began) * (os.cpu_count() or 1)
        shared = stretch(busy_seconds() - self.busy - own_seconds, room)
        course = statistics.median(self.meanwhile) if self.meanwhile else 1.0
        return min(shared * max(self.slowness, course, slowness(piece_seconds())), LONGEST_STRETCH)

    def lines(self, stretch: float) -> list[str]:
        """What a run ends with."""
        slowest = sorted(self.by_unit.items(), key=lambda item: -item[1])[:LISTED]
        tests = sorted(self.by_test.items(), key=lambda item: -item[1])[:LISTED]
        seconds, of_workers = self.clock() - self.began, sum(self.by_unit.values())
        total = f"{seconds:.0f} s, {of_workers:.0f} of all workers; the limit is stretched by {stretch:.2f}"
        return [total, *(f"{seconds:6.1f} s  {name}" for name, seconds in (*slowest, *tests))]

    def faults(self, stretch: float) -> list[str]:
        """What took too long."""
        seconds = self.clock() - self.began
        real = sum(elapsed for name, elapsed in self.by_unit.items() if on_real(name))
        limit = (RUN_SECONDS + min(real, REAL_SECONDS)) * stretch
        return [f"all tests took {seconds:.0f} s, over {limit:.0f}"] if seconds > limit else []


def stretch(elsewhere_seconds: float, room: float) -> float:
    """``elsewhere_seconds``: CPU seconds that went elsewhere; ``room``: all that there were."""
    share = min(max(elsewhere_seconds / room, 0.0), 1.0) if room else 0.0
    return min(1 / (1 - share), LONGEST_STRETCH) if share < 1 else LONGEST_STRETCH


def slowness(seconds: float) -> float:
    """How much slower this machine is than the one that the limits were set on, at least 1."""
    return max(1.0, seconds / PIECE_SECONDS)


def piece_seconds() -> float:
    """What the fixed piece of Python takes now, in CPU seconds: others' do not count.

    The least of some processes: where a process has its memory makes it faster or slower by half for all its life.
    """
    return min(
        float(subprocess.run(_PIECE, capture_output=True, text=True, check=True).stdout) for _ in range(PROCESSES)
    )


def busy_seconds() -> float:
    """CPU seconds of the machine so far; 0 where it does not say, which leaves the limits as they are."""
    status = Path("/proc/stat")
    if not status.exists():
        return 0.0
    user, nice, system, _, _, *interrupts = map(int, status.read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")
