"""Conditions of policies: the operators that the policies of this project use, and values that may be lists."""

from __future__ import annotations

import fnmatch
from typing import Any

EACH, ANY = "ForAllValues:", "ForAnyValue:"


def holds(operator: str, value: str | tuple[str, ...] | None, accepted: list[str]) -> bool:
    """Whether ``value`` meets a condition of a policy. None stands for a missing key, and a tuple is of a key that has
    many values."""
    if operator.startswith(EACH):
        values = (value,) if isinstance(value, str) else value or ()
        return all(_holds(operator.removeprefix(EACH), single, accepted) for single in values)
    if operator.startswith(ANY):
        values = (value,) if isinstance(value, str) else value or ()
        return any(_holds(operator.removeprefix(ANY), single, accepted) for single in values)
    if isinstance(value, tuple):
        return operator == "Null" and accepted != ["true"]
    return _holds(operator, value, accepted)


def _holds(operator: str, value: str | None, accepted: list[str]) -> bool:
    if operator == "Null":
        return (value is None) == (accepted == ["true"])
    if operator.endswith("IfExists"):
        return value is None or _holds(operator.removesuffix("IfExists"), value, accepted)
    if value is None:
        return "Not" in operator
    if operator in {"Bool", "StringEquals", "ArnEquals"}:
        return value in accepted or (operator == "ArnEquals" and _like(value, accepted))
    if operator in {"StringLike", "ArnLike"}:
        return _like(value, accepted)
    if operator in {"StringNotEquals", "StringNotLike"}:
        return value not in accepted and not _like(value, accepted)
    raise NotImplementedError(f"the local cloud does not know the condition operator {operator}")


def _like(value: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(value, pattern) for pattern in patterns)


def many(value: Any) -> list[Any]:
    """A value of a policy as a list; it may be a list or a single value."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
