"""Kubernetes-style conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Condition:
    """One observed aspect of a resource. ``status`` is ``True``, ``False`` or ``Unknown``."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: str


def with_condition(conditions: Sequence[Condition], new: Condition) -> tuple[Condition, ...]:
    """``conditions`` with ``new`` in place of the one of its type.

    The transition time stays when the status does (Kubernetes API conventions).
    """
    merged: list[Condition] = []
    found = False
    for old in conditions:
        if old.type != new.type:
            merged.append(old)
            continue
        found = True
        moment = old.last_transition_time if old.status == new.status else new.last_transition_time
        merged.append(Condition(new.type, new.status, new.reason, new.message, moment))
    if not found:
        merged.append(new)
    return tuple(merged)
