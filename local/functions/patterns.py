"""Event patterns as EventBridge and event source mappings use them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def matches(pattern: Mapping[str, Any], event: Any) -> bool:
    """Whether an event has, for each leaf of the pattern, one of the values listed there."""
    for key, expected in pattern.items():
        value = event.get(key) if isinstance(event, Mapping) else None
        if isinstance(expected, Mapping):
            if not matches(expected, value):
                return False
        elif not any(_rule_matches(rule, value) for rule in expected):
            return False
    return True


def _rule_matches(rule: Any, value: Any) -> bool:
    if not isinstance(rule, Mapping):
        return rule in value if isinstance(value, list) else bool(rule == value)
    (operator, argument), *_ = rule.items()
    if operator == "exists":
        return bool((value is not None) == argument)
    if operator == "prefix":
        return isinstance(value, str) and value.startswith(argument)
    if operator == "anything-but":
        return value is not None and value not in (argument if isinstance(argument, list) else [argument])
    raise ValueError(f"the local cloud does not know the pattern operator {operator}")


def any_filter(filters: list[str], event: Mapping[str, Any]) -> bool:
    """Whether one of the patterns (JSON texts) matches; no pattern matches everything."""
    return not filters or any(matches(json.loads(text), event) for text in filters)
