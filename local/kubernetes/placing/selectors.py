"""Selectors of labels and of nodes, tolerations, as the API server and the scheduler read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Object = dict[str, Any]
Labels = Mapping[str, str]
KEEPS_OUT = ("NoSchedule", "NoExecute")
"""Effects of taints that keep a pod from a node. ``PreferNoSchedule`` only ranks."""


def selects(selector: Mapping[str, Any] | None, labels: Labels) -> bool:
    """Whether a label selector selects these labels. None selects nothing, an empty one everything."""
    if selector is None:
        return False
    match_labels = selector.get("matchLabels") or {}
    return all(labels.get(name) == value for name, value in match_labels.items()) and all(
        holds(expression, labels) for expression in selector.get("matchExpressions") or ()
    )


def holds(expression: Mapping[str, Any], labels: Labels) -> bool:
    """Whether one requirement holds. ``Gt`` and ``Lt`` compare whole numbers, and hold for nothing else."""
    operator, values = expression["operator"], list(expression.get("values") or ())
    value = labels.get(expression["key"])
    if operator == "In":
        return value in values if value is not None else False
    if operator == "NotIn":
        return value is None or value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    try:
        amount, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return amount > bound if operator == "Gt" else amount < bound


def in_terms(terms: Iterable[Mapping[str, Any]], name: str, labels: Labels) -> bool:
    """Whether one of the terms of a node selector takes the node. A term without requirements takes none."""
    return any(_in_term(term, name, labels) for term in terms)


def _in_term(term: Mapping[str, Any], name: str, labels: Labels) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(holds(entry, labels) for entry in expressions) and all(
        holds(entry, {"metadata.name": name}) for entry in fields
    )


def tolerates(tolerations: Sequence[Mapping[str, Any]], taint: Mapping[str, Any]) -> bool:
    """Whether one of the tolerations tolerates the taint."""
    return any(
        toleration.get("effect") in (None, "", taint["effect"])
        and toleration.get("key") in (None, "", taint["key"])
        and (toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or ""))
        for toleration in tolerations
    )


def untolerated(tolerations: Sequence[Mapping[str, Any]], taints: Iterable[Mapping[str, Any]]) -> Object | None:
    """The first taint that keeps a pod with these tolerations out; None when there is none."""
    for taint in taints:
        if taint["effect"] in KEEPS_OUT and not tolerates(tolerations, taint):
            return dict(taint)
    return None
