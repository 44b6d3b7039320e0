"""The scheduler's function: which failures the stream tries again."""

from __future__ import annotations

from typing import Any

import pytest

from functions.scheduler import handler
from functions.scheduler.handler import lambda_handler
from stockyard import errors
from stockyard.wiring import passes
from tests.harness.worlds.inprocess import Context

CONTEXT = Context("scheduler", "request")


class Broken:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def woken(self, *_: Any) -> Any:
        raise self._error

    overdue = woken


def test_the_stream_goes_on_behind_what_fails_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "scheduler", lambda: Broken(errors.InvalidInput("no")))
    assert lambda_handler({"Records": []}, CONTEXT) == {}
    with pytest.raises(errors.InvalidInput):
        lambda_handler({}, CONTEXT)


def test_a_fault_of_ours_is_logged_and_left_to_the_schedule_which_raises_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged_errors: list[Any] = []
    monkeypatch.setattr(handler.logger, "exception", lambda _, extra: logged_errors.append(extra["error"]))
    monkeypatch.setattr(passes, "scheduler", lambda: Broken(ZeroDivisionError("ours")))
    assert lambda_handler({"Records": []}, CONTEXT) == {}
    assert logged_errors == ["ZeroDivisionError"]
    with pytest.raises(ZeroDivisionError):
        lambda_handler({}, CONTEXT)


@pytest.mark.parametrize("error", [errors.StoreUnavailable("down"), errors.Conflict("busy")])
def test_the_stream_tries_again_what_may_work_later(
    error: errors.StockyardError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "scheduler", lambda: Broken(error))
    with pytest.raises(type(error)):
        lambda_handler({"Records": []}, CONTEXT)
