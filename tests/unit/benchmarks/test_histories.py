"""No execution of any procedure can fill its history, whatever lasts for how long and fails how often."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import histories
from stacks import workflows
from stockyard.lifecycle import history
from stockyard.lifecycle.change_phases import CHANGE_BALANCED
from stockyard.lifecycle.phases import PROCEDURES


def test_no_execution_fills_its_history(capsys: pytest.CaptureFixture[str]) -> None:
    table = histories.bounds()
    assert [each.workflow for each in table] == sorted({procedure.workflow for procedure in PROCEDURES.values()})
    for each in table:
        assert history.HANDED_OVER_AT < each.execution < history.MOST_EVENTS, each
    assert histories.main() == 0
    assert all(each.workflow in capsys.readouterr().out for each in table[:1])


def test_what_long_waits_would_take_in_one_execution_is_seen() -> None:
    """An approval of two days, four of the pools' phases: the reason why executions are handed over."""
    assert histories.bound(CHANGE_BALANCED).usual > 7 * history.MOST_EVENTS


def test_a_document_that_is_never_handed_over_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    polled = workflows._polled

    def endless(*parts: object) -> dict[str, workflows.State]:
        states = polled(*parts)
        return {name: {**state, "Choices": state.get("Choices", [])[:1]} for name, state in states.items()}

    monkeypatch.setattr(workflows, "_polled", endless)
    with pytest.raises(ValueError, match="checks may be looked at for ever"):
        histories.bound(replace(CHANGE_BALANCED, phases=CHANGE_BALANCED.phases[:1]))
