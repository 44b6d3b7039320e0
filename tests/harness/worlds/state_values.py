"""Values in a workflow document: reference paths, payload templates and the conditions of ``Choice``.

The part of the Amazon States Language that our documents use; anything else is a ``ValueError``, never a guess.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

_MISSING = object()


def read(path: str, data: Any, context: Mapping[str, Any]) -> Any:
    """Value at a reference path (``$.a.b``, or ``$$.a.b`` into the context object). ``KeyError`` when nothing."""
    value = _follow(path, data, context)
    if value is _MISSING:
        raise KeyError(path)
    return value


def _follow(path: str, data: Any, context: Mapping[str, Any]) -> Any:
    source, steps = (context, path[2:]) if path.startswith("$$") else (data, path[1:])
    if not path.startswith("$") or (steps and not steps.startswith(".")) or "[" in steps or "*" in steps:
        raise ValueError(f"the path {path!r} is not supported")
    for name in steps.split(".")[1:]:
        if not isinstance(source, Mapping) or name not in source:
            return _MISSING
        source = source[name]
    return source


def render(template: Any, data: Any, context: Mapping[str, Any]) -> Any:
    """A payload template with every ``name.$`` replaced by what its path leads to."""
    if isinstance(template, Mapping):
        return {
            key.removesuffix(".$"): read(value, data, context) if key.endswith(".$") else render(value, data, context)
            for key, value in template.items()
        }
    if isinstance(template, list):
        return [render(item, data, context) for item in template]
    return template


def with_result(path: str | None, data: Any, result: Any) -> Any:
    """The state's output: ``result`` at ``path`` in a copy of ``data``. ``$`` replaces it, None drops the result."""
    if path is None:
        return data
    if path == "$":
        return result
    changed = copy.deepcopy(data)
    names = path.split(".")[1:]
    if not path.startswith("$.") or not isinstance(changed, dict):
        raise ValueError(f"the result path {path!r} is not supported")
    parent = changed
    for name in names[:-1]:
        parent = parent.setdefault(name, {})
    parent[names[-1]] = result
    return changed


def _is(kind: type | tuple[type, ...]) -> Callable[[Any, Any], bool]:
    return lambda value, expected: isinstance(value, kind) and value == expected


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "StringEquals": _is(str),
    "BooleanEquals": _is(bool),
    "NumericEquals": lambda value, expected: _number(value) and value == expected,
    "NumericGreaterThan": lambda value, expected: _number(value) and value > expected,
    "NumericLessThan": lambda value, expected: _number(value) and value < expected,
}


def holds(rule: Mapping[str, Any], data: Any, context: Mapping[str, Any]) -> bool:
    """Whether a rule of a ``Choice`` state is true. A value of another type never is. ``KeyError``: nothing there."""
    if "And" in rule:
        return all(holds(part, data, context) for part in rule["And"])
    if "Or" in rule:
        return any(holds(part, data, context) for part in rule["Or"])
    if "Not" in rule:
        return not holds(rule["Not"], data, context)
    if "IsPresent" in rule:
        return (_follow(rule["Variable"], data, context) is not _MISSING) == bool(rule["IsPresent"])
    names = rule.keys() - {"Variable", "Next", "Comment"}
    if len(names) != 1 or not names <= COMPARISONS.keys():
        raise ValueError(f"the comparison {sorted(names)} is not supported")
    name = names.pop()
    return COMPARISONS[name](read(rule["Variable"], data, context), rule[name])
