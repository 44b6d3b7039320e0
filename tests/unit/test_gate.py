"""The gate that keeps the tests quick."""

from __future__ import annotations

from typing import Any

import pytest

from tests import gate as gates
from tests.gate import (
    PIECE_SECONDS,
    REAL_SECONDS,
    RUN_SECONDS,
    SAMPLED_SECONDS,
    START_SECONDS,
    Gate,
    busy_seconds,
    piece_seconds,
    slowness,
    start_seconds,
    stretch,
)


def report(test: str, when: Any, seconds: float) -> pytest.TestReport:
    location = ("tests/a.py", 1, "a")
    return pytest.TestReport(f"tests/a.py::{test}", location, {}, "passed", None, when, duration=seconds)


def gate(*reports: pytest.TestReport) -> Gate:
    """A run that has just begun; its clock stands still."""
    gate = Gate(clock=lambda: 0.0)
    for each in reports:
        gate.pytest_runtest_logreport(each)
    return gate


def test_what_took_longest_is_named() -> None:
    quick = gate(report("quick", "setup", 60.0), report("quick", "call", 1.0), report("slow", "call", 30.5))
    assert quick.faults(1.0) == []
    assert quick.lines(1.0) == [
        "0 s, 92 of all workers; the limit is stretched by 1.00",
        "  91.5 s  tests/a.py",
        "  30.5 s  tests/a.py::slow",
        "   1.0 s  tests/a.py::quick",
    ]


def test_a_run_has_a_limit() -> None:
    slow = gate(report("t", "call", 1.0))
    slow.began -= RUN_SECONDS + 10
    assert slow.faults(1.0) == [f"all tests took {RUN_SECONDS + 10:.0f} s, over {RUN_SECONDS:.0f}"]
    assert slow.faults(1.1) == []


def test_a_run_on_real_control_planes_may_take_longer() -> None:
    location = ("tests/kubernetes/test_served.py", 1, "a")
    slow = gate(
        pytest.TestReport("tests/kubernetes/test_a.py::t", location, {}, "passed", None, "call", duration=REAL_SECONDS)
    )
    slow.began -= RUN_SECONDS + REAL_SECONDS - 10
    assert slow.faults(1.0) == []
    slow.began -= 20
    limit = RUN_SECONDS + REAL_SECONDS
    assert slow.faults(1.0) == [f"all tests took {limit + 10:.0f} s, over {limit:.0f}"]


@pytest.mark.parametrize(
    ("load_of_others", "room", "expected"), [(0, 100, 1), (-5, 100, 1), (50, 100, 2), (99, 100, 5), (1, 0, 1)]
)
def test_others_on_the_machine_stretch_the_limits(load_of_others: float, room: float, expected: float) -> None:
    assert stretch(load_of_others, room) == expected


def test_a_machine_that_tells_its_work_tells_more_later() -> None:
    before = busy_seconds()
    assert sum(number * number for number in range(300_000))
    assert busy_seconds() >= before


@pytest.mark.parametrize(("share_of_usual", "expected"), [(0.5, 1.0), (1.0, 1.0), (2.5, 2.5)])
def test_a_slow_machine_stretches_the_limits(share_of_usual: float, expected: float) -> None:
    assert slowness(share_of_usual * PIECE_SECONDS, 0.0) == pytest.approx(expected)
    assert slowness(0.0, share_of_usual * START_SECONDS) == pytest.approx(expected)
    assert piece_seconds() > 0
    assert start_seconds() > 0


def test_a_machine_that_is_slow_in_between_stretches_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "stretch", lambda *_: 1.0)
    monkeypatch.setattr(gates, "piece_seconds", lambda: PIECE_SECONDS)
    monkeypatch.setattr(gates, "start_seconds", lambda: START_SECONDS)
    moments = iter(range(0, 10_000, int(SAMPLED_SECONDS)))
    run = Gate(clock=lambda: next(moments))
    for share in (3.0, 2.0, 1.0):
        monkeypatch.setattr(gates, "piece_seconds", lambda share=share: share * PIECE_SECONDS)
        run.pytest_runtest_logreport(report("t", "call", 0.1))
    assert run.stretch() == pytest.approx(2.0), "the median of the course; at its start and end it was quick"
