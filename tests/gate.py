"""The tests' own budget: how long a run of all of them may take from its start to its end.

A run says what took longest, and only one that is too long as a whole fails: what a single test takes is chance on a
machine that does other things besides. On such a machine, or on a slower one, everything takes longer. So the limit is
stretched by the share of the cores that others had, and by how much longer than where the limit was set two things
take, the slower of them: a fixed piece of Python, and the start of a process, which needs memory and the kernel.
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
REAL_SECONDS = 320.0
"""What tests on real control planes may take besides: they run only where one is built."""
LISTED = 10
LONGEST_STRETCH = 5.0
SAMPLED_SECONDS = 45.0
"""So often the machine's speed is measured: at the start and the end it may be another than between."""
PIECE = 400_000
"""Rounds of the fixed piece of Python."""
PIECE_SECONDS = 0.01
"""What it took where the limit was set."""
START_SECONDS = 0.09
"""What the start of a process took there that imports as much as a command does."""
PROCESSES, STARTS = 6, 3
_TIMED = (
    f"timeit.repeat('total += number & 7', 'total, number = 0, 5', timer=time.process_time, repeat=3, number={PIECE})"
)
_START = (
    sys.executable,
    "-I",
    "-c",
    "import asyncio, decimal, email.message, http.client, json, logging.handlers, ssl, unittest.mock, urllib.request,"
    " xml.etree.ElementTree, zipfile",
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
    looked: float = 0.0
    """When that was looked at last."""

    def __post_init__(self) -> None:
        self.began, self.busy, self.slowness = self.clock(), busy_seconds(), slowness_now()
        self.looked = self.began

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test has ended."""
        if self.clock() - self.looked >= SAMPLED_SECONDS:
            self.looked = self.clock()
            self.meanwhile.append(slowness_now())
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
        return min(shared * max(self.slowness, course, slowness_now()), LONGEST_STRETCH)

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


def slowness(piece: float, start: float) -> float:
    """How much slower this machine is than the one that the limits were set on, at least 1."""
    return max(1.0, piece / PIECE_SECONDS, start / START_SECONDS)


def slowness_now() -> float:
    """How slow the machine is at this moment."""
    return slowness(piece_seconds(), start_seconds())


def start_seconds() -> float:
    """CPU seconds that a process takes to start and to import, the kernel's among them; the least of some."""
    starts = []
    for _ in range(STARTS):
        before = _children_seconds()
        subprocess.run(_START, check=True)
        starts.append(_children_seconds() - before)
    return min(starts)


def _children_seconds() -> float:
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


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
