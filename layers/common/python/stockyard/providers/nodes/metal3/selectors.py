"""Label selectors of Kubernetes: as a text for its API, and as a rule for what was counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def text_of(selector: Mapping[str, Any]) -> str:
    """The selector as a query has it; empty for every object."""
    return ",".join(
        (*(f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())), *_texts(selector))
    )


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether an object with these labels is meant."""
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_holds(each, labels) for each in selector.get("matchExpressions") or ())


def _texts(selector: Mapping[str, Any]) -> Iterator[str]:
    for each in selector.get("matchExpressions") or ():
        key, values = each["key"], ",".join(each.get("values") or ())
        match each["operator"]:
            case "In":
                yield f"{key} in ({values})"
            case "NotIn":
                yield f"{key} notin ({values})"
            case "Exists":
                yield key
            case _:
                yield f"!{key}"


def _holds(each: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(each["key"]), each.get("values") or ()
    match each["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None
