"""The history of an execution: how much of it is used, and when the next execution goes on with the work.

A standard execution of Step Functions may have 25,000 events and fails for good with the next one, which no document
can catch. So the answer to each look carries the count, the document gives it back with the next look, and the work
goes over to a new execution long before the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_EVENTS = 25_000
"""Of one execution: "Maximum execution history size", AWS Step Functions, service quotas."""
LOOK_EVENTS = 9
"""Of a phase that is not done: its task is entered, scheduled, started, succeeded and left, then a choice and a wait
are entered and left."""
RETRY_EVENTS = 3
"""Of a call that failed and is made again: it is scheduled, started and failed."""
TOKEN_EVENTS = 6
"""Of a phase that waits for a task token: as a task, and the answer is awaited (``TaskSubmitted``)."""
HANDED_OVER_AT = 15_000
"""The events after which a phase that is not done goes on in the next execution. What is left is for phases that end
at their first look, for retries, and for undoing a phase that fails."""
GIVEN_UP_AT = 22_000
"""The events after which nothing more is undone: what is left is on the ledger, and a deletion removes it."""


def after_look(state: Mapping[str, Any], retries: int) -> int:
    """The events of an execution when this look has been answered: those before, as ``state`` (the data of the
    execution) has them, and those of the look. ``retries`` are the calls of this state that failed before it."""
    result = state.get("result")
    answer = result.get("answer") if isinstance(result, Mapping) else None
    events = answer.get("events", 0) if isinstance(answer, Mapping) else 0
    return int(events) + LOOK_EVENTS + RETRY_EVENTS * retries


def is_long(events: int) -> bool:
    """Whether the next execution is to go on with what is not done."""
    return events >= HANDED_OVER_AT


def is_full(events: int) -> bool:
    """Whether there is room only for telling how it ended."""
    return events >= GIVEN_UP_AT
