"""The gate that keeps the tests quick."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gate import REAL_SECONDS, Gate

LIMIT = 700.0


def report(test: str, when: Any, seconds: float, file: str = "tests/a.py") -> pytest.TestReport:
    return pytest.TestReport(f"{file}::{test}", (file, 1, "a"), {}, "passed", None, when, duration=seconds)


def gate(*reports: pytest.TestReport) -> Gate:
    """A run that has just begun; its clock stands still."""
    gate = Gate(LIMIT, clock=lambda: 0.0)
    for each in reports:
        gate.pytest_runtest_logreport(each)
    return gate


def test_what_took_longest_is_named() -> None:
    quick = gate(report("quick", "setup", 60.0), report("quick", "call", 1.0), report("slow", "call", 30.5))
    assert quick.faults() == []
    assert quick.lines() == [
        "0 s, 92 of all workers; the limit is 700",
        "  91.5 s  tests/a.py",
        "  30.5 s  tests/a.py::slow",
        "   1.0 s  tests/a.py::quick",
    ]


@pytest.mark.parametrize(
    ("file", "limit"), [("tests/a.py", LIMIT), ("tests/kubernetes/test_a.py", LIMIT + REAL_SECONDS)]
)
def test_a_run_has_a_limit_that_real_control_planes_extend(file: str, limit: float) -> None:
    run = gate(report("t", "call", REAL_SECONDS + 5, file))
    run.began -= limit - 10
    assert run.faults() == []
    run.began -= 20
    assert run.faults() == [f"all tests took {limit + 10:.0f} s, over {limit:.0f}"]
