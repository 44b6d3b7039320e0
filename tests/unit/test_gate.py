"""The gate that keeps the tests quick."""

from __future__ import annotations

from typing import Any

import pytest

from tests import gate as gates
from tests.gate import PIECE_SECONDS, SAMPLED, Gate, busy_seconds, piece_seconds, slowness, stretch


def report(test: str, when: Any, seconds: float) -> pytest.TestReport:
    location = ("tests/a.py", 1, "a")
    return pytest.TestReport(f"tests/a.py::{test}", location, {}, "passed", None, when, duration=seconds)


def gate(*reports: pytest.TestReport) -> Gate:
    gate = Gate()
    for each in reports:
        gate.pytest_runtest_logreport(each)
    return gate


def test_a_slow_test_is_named_without_its_shared_fixture() -> None:
    slow = gate(report("quick", "setup", 60.0), report("quick", "call", 1.0), report("slow", "call", 30.5))
    assert slow.faults(1.0) == ["tests/a.py::slow took 30.5 s, over 30"]
    assert slow.faults(1.1) == []
    assert slow.lines(1.0)[:2] == ["92 worker seconds; limits are stretched by 1.00", "  91.5 s  tests/a.py"]


def test_a_unit_has_a_limit_with_all_its_fixtures() -> None:
    slow = gate(*(report(f"t{number}", "setup", 17.0) for number in range(10)))
    assert slow.faults(1.0) == ["tests/a.py took 170.0 s, over 160"]


def test_all_have_a_limit() -> None:
    slow = gate(*(report(f"t{number}", "call", 27.0) for number in range(50)))
    assert slow.faults(1.0)[0] == "all tests took 1350.0 s, over 1320"


def test_those_on_real_control_planes_have_a_limit_of_their_own() -> None:
    location = ("tests/kubernetes/test_served.py", 1, "a")
    slow = gate(
        *(report(f"t{number}", "call", 17.0) for number in range(50)),
        *(
            pytest.TestReport(
                f"tests/kubernetes/test_{file}.py::t", location, {}, "passed", None, "setup", duration=140.0
            )
            for file in ("one", "two", "three")
        ),
    )
    assert slow.faults(1.0) == [
        "tests on real control planes took 420.0 s, over 400",
        "tests/a.py took 850.0 s, over 160",
    ]


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
    assert slowness(share_of_usual * PIECE_SECONDS) == pytest.approx(expected)
    assert piece_seconds() > 0


def test_a_machine_that_is_slow_in_between_stretches_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "stretch", lambda *_: 1.0)
    monkeypatch.setattr(gates, "piece_seconds", lambda: PIECE_SECONDS)
    run = Gate()
    for share in (3.0, 2.0, 1.0):
        monkeypatch.setattr(gates, "piece_seconds", lambda share=share: share * PIECE_SECONDS)
        for number in range(SAMPLED):
            run.pytest_runtest_logreport(report(f"t{number}", "call", 0.1))
    assert run.stretch() == pytest.approx(2.0), "the median of the course; at its start and end it was quick"
