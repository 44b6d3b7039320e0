"""Kubernetes-style conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.states import Truth


@dataclass(frozen=True, slots=True)
class Condition:
    """One observed aspect of a resource."""

    type: str
    status: Truth
    reason: str
    message: str
    last_transition_time: str


def with_condition(conditions: Sequence[Condition], new: Condition) -> tuple[Condition, ...]:
    """``conditions`` with ``new`` instead of the condition of the same type.

    When the status is the same, the old transition time stays (Kubernetes API conventions).
    """
    by_type = {condition.type: condition for condition in conditions}
    old = by_type.get(new.type)
    if old is not None and old.status == new.status:
        new = replace(new, last_transition_time=old.last_transition_time)
    return tuple({**by_type, new.type: new}.values())
