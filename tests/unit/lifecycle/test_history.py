"""The history of an execution: how much of it is used, and when the work goes over to the next execution."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.lifecycle.history import (
    GIVEN_UP_AT,
    HANDED_OVER_AT,
    LOOK_EVENTS,
    RETRY_EVENTS,
    after_look,
    is_full,
    is_long,
)


@pytest.mark.parametrize(
    ("state", "before"),
    [
        ({}, 0),
        ({"result": None}, 0),
        ({"result": {"answer": None}}, 0),
        ({"result": {"answer": {}}}, 0),
        ({"result": {"answer": {"events": 40}}}, 40),
    ],
)
def test_a_look_and_its_retries_come_to_what_the_last_answer_has_counted(state: dict[str, Any], before: int) -> None:
    assert after_look(state, 0) == before + LOOK_EVENTS
    assert after_look(state, 2) == before + LOOK_EVENTS + 2 * RETRY_EVENTS


def test_the_work_goes_over_and_is_given_up_at_its_very_event() -> None:
    assert [is_long(HANDED_OVER_AT + more) for more in (-1, 0)] == [False, True]
    assert [is_full(GIVEN_UP_AT + more) for more in (-1, 0)] == [False, True]
