"""The handler of Step Functions: what goes out of it, and what its runtime logs of that."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from stockyard.edge import phases
from stockyard.errors import VendorRefused
from stockyard.operations.engine.step import Step
from tests.harness.worlds.inprocess import Context

EVENT = {"tenant": "acme", "cluster_id": "clu_1", "phase": "network"}


def ask(act: Any) -> dict[str, Any]:
    """Answer of the handler when the phase does this."""
    return phases.handler(lambda tenant: tenant, act)(EVENT, Context("cluster-phases", "request"))


def refused(depth: int) -> Any:
    """An error of a cloud, from so deep in the calls, and because of another one."""
    if depth:
        return refused(depth - 1)
    try:
        raise KeyError("a vendor's own")
    except KeyError as cause:
        raise VendorRefused("no room") from cause


def test_an_outcome_that_is_expected_leaves_no_trace_of_the_work(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(VendorRefused) as outcome:
        ask(lambda _services, _event: refused(20))
    text = "".join(traceback.format_exception(outcome.value))
    assert "refused" not in [frame.name for frame in traceback.extract_tb(outcome.value.__traceback__)]
    assert "KeyError" not in text
    (line,) = [record for record in caplog.records if record.message == "phase failed"]
    assert (line.error, line.detail) == ("VendorRefused", "no room")  # type: ignore[attr-defined]


def test_a_fault_of_ours_keeps_its_trace() -> None:
    def broken(_services: Any, _event: Any) -> Any:
        raise ValueError("a fault")

    with pytest.raises(ValueError, match="a fault") as fault:
        ask(broken)
    assert "broken" in [frame.name for frame in traceback.extract_tb(fault.value.__traceback__)]


def test_a_step_is_answered_with_when_to_come_again() -> None:
    answer = ask(lambda *_: Step(False, 30, "in use", events=18))
    assert answer == {"done": False, "wait": 30, "events": 18, "continued": False}
