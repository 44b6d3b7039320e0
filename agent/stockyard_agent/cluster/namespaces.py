"""Selectors of namespaces in the rules of pods become the namespaces that they select, as Stockyard knows no labels of
namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..kubernetes import Kubernetes, Object
from .pod_rules import selects
from .pod_templates import TERMS

NAMESPACES = "/api/v1/namespaces"
NONE = "(none)"
"""In place of the names where a selector selects none: no namespace can be called so, and no name at all would mean the
pod's own."""
_PAGE = 500
Labels = Mapping[str, Mapping[str, str]]
"""By the name of a namespace."""


def labels_of_namespaces(kube: Kubernetes) -> Labels:
    """Raises ``Refused``, ``Unreachable``."""
    return dict(kube.collect(NAMESPACES, {}, _labels, _PAGE))


def _labels(item: Object) -> tuple[str, dict[str, str]]:
    meta = item["metadata"]
    return meta["name"], dict(meta.get("labels") or {})


def has_selector(part: str) -> bool:
    """Whether the text of a scheduling part selects namespaces by labels. An empty selector selects all of them, which
    needs no labels."""
    return '"namespaceSelector":{"' in part


def resolved(part: Mapping[str, Any], namespaces: Labels) -> Mapping[str, Any]:
    """The scheduling part with the names of the namespaces that its terms select, in order."""
    affinity = dict(part.get("affinity") or {})
    for kind in affinity.keys() & {"podAffinity", "podAntiAffinity"}:
        rules = affinity[kind]
        terms = {name: [_weighted(term, namespaces) for term in rules[name]] for name in TERMS if rules.get(name)}
        affinity[kind] = {**rules, **terms}
    return {**part, "affinity": affinity} if affinity else part


def _weighted(term: Mapping[str, Any], namespaces: Labels) -> Mapping[str, Any]:
    if "podAffinityTerm" in term:
        return {**term, "podAffinityTerm": _term(term["podAffinityTerm"], namespaces)}
    return _term(term, namespaces)


def _term(term: Mapping[str, Any], namespaces: Labels) -> Mapping[str, Any]:
    selector = term.get("namespaceSelector")
    if not selector or not any(selector.values()):
        return term
    names = {name for name, labels in namespaces.items() if selects(selector, labels)} | {*term.get("namespaces", ())}
    other_fields = {name: value for name, value in term.items() if name != "namespaceSelector"}
    return {**other_fields, "namespaces": sorted(names) or [NONE]}
