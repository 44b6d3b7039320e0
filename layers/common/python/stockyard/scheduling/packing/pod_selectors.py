"""Rules of a pod about other pods: spread, affinity and anti-affinity, and the selectors in them.

Errors are ``ValueError`` with a text that begins with the field, as a JSON pointer into the manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from stockyard.domain.values.requirements import normal_key
from stockyard.scheduling.packing.fields import (
    Document,
    FieldPath,
    choice,
    integer,
    listed,
    object_at,
    optional_text,
    text,
    text_list,
    texts,
    wrong,
)
from stockyard.scheduling.packing.model import (
    NAMESPACE_NAME,
    CommonNamespaces,
    Namespaces,
    PodTerm,
    SelectedNamespaces,
    Selector,
    Spread,
    Term,
    term,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NamespaceLabels = Mapping[str, Mapping[str, str]]
"""The labels of namespaces by name."""
_MOST_WEIGHT = 100
MORE_THAN_ONE = 2
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_KEY_LISTS = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))


def spread(labels: Mapping[str, str]) -> Callable[[Document, FieldPath], Spread]:
    """The reader of topology spread constraints for a pod with these labels."""

    def read(document: Document, path: FieldPath) -> Spread:
        most = integer(document.get("maxSkew", 1), (*path, "maxSkew"), 1)
        least = document.get("minDomains")
        unsatisfiable = choice(document, "whenUnsatisfiable", path, ("DoNotSchedule", "ScheduleAnyway"))
        if least is not None and unsatisfiable != "DoNotSchedule":
            raise wrong((*path, "minDomains"), "it goes with whenUnsatisfiable DoNotSchedule alone")
        return Spread(
            normal_key(text(document.get("topologyKey"), (*path, "topologyKey"))),
            most,
            _selector(document, path, labels),
            hard=unsatisfiable == "DoNotSchedule",
            min_domains=None if least is None else integer(least, (*path, "minDomains"), 1),
            honors_affinity=choice(document, "nodeAffinityPolicy", path, ("Honor", "Ignore")) == "Honor",
            honors_taints=choice(document, "nodeTaintsPolicy", path, ("Ignore", "Honor")) == "Honor",
        )

    return read


def pod_terms(
    document: Document,
    path: FieldPath,
    namespace: str,
    labels: Mapping[str, str],
    known_namespaces: NamespaceLabels | None,
) -> Iterable[PodTerm]:
    """The terms of a pod's affinity or anti-affinity, the required ones first.

    ``known_namespaces`` are the labels of the namespaces that are known; None where nothing is known of any.
    """
    for required, required_path in listed(document.get(REQUIRED), (*path, REQUIRED)):
        yield _pod_term(required, required_path, 0, namespace, labels, known_namespaces)
    for preferred, preferred_path in listed(document.get(PREFERRED), (*path, PREFERRED)):
        weight = read_weight(preferred, preferred_path)
        inner = object_at(preferred, "podAffinityTerm", preferred_path)
        yield _pod_term(inner, (*preferred_path, "podAffinityTerm"), weight, namespace, labels, known_namespaces)


def of_one_pod(terms: Iterable[PodTerm]) -> Iterable[PodTerm]:
    """The terms of an affinity, of which the required ones are about the same pods: kube-scheduler counts a pod for
    them only when it matches all of them (``podMatchesAllAffinityTerms``)."""
    listed_terms = list(terms)
    required = [each for each in listed_terms if not each.weight]
    if len(required) < MORE_THAN_ONE:
        return listed_terms
    requirements = [each.selector.requirements for each in required]
    selector = Selector()
    if None not in requirements:
        entries = {entry for each in requirements for entry in each or ()}
        selector = Selector(tuple(sorted(entries, key=lambda entry: (entry[0], repr(entry[1])))))
    sets = tuple(dict.fromkeys(each.namespaces for each in required if each.namespaces is not None))
    parts = tuple(part for each in sets for part in (each.sets if isinstance(each, CommonNamespaces) else (each,)))
    common: Namespaces = CommonNamespaces(parts) if len(parts) > 1 else next(iter(sets), None)
    joined = [replace(each, selector=selector, namespaces=common) for each in required]
    return [*joined, *(each for each in listed_terms if each.weight)]


def read_weight(document: Document, path: FieldPath) -> int:
    """The weight of a preference: from 1 to 100."""
    weight = integer(document.get("weight", 1), (*path, "weight"), 1)
    if weight > _MOST_WEIGHT:
        raise wrong((*path, "weight"), f"no more than {_MOST_WEIGHT} is possible")
    return weight


def _pod_term(
    document: Document,
    path: FieldPath,
    weight: int,
    namespace: str,
    labels: Mapping[str, str],
    known_namespaces: NamespaceLabels | None,
) -> PodTerm:
    key = normal_key(text(document.get("topologyKey"), (*path, "topologyKey")))
    names = frozenset(text_list(document.get("namespaces"), (*path, "namespaces")))
    selector = _selector(document, path, labels)
    if document.get("namespaceSelector") is None:
        return PodTerm(key, selector, names or frozenset({namespace}), weight)
    return PodTerm(key, selector, _namespaces(document, path, names, known_namespaces), weight)


def _namespaces(
    document: Document, path: FieldPath, names: frozenset[str], known_namespaces: NamespaceLabels | None
) -> Namespaces:
    """The namespaces that a term names or selects; None for all of them.

    A namespace whose labels are not known has the label of its name alone. Where nothing is known of any, a selector of
    other labels counts the pods of all.
    """
    here = (*path, "namespaceSelector")
    requirements = _requirements(document["namespaceSelector"], here)
    if not requirements:
        return None
    if known_namespaces is None and any(key != NAMESPACE_NAME for key, _ in requirements):
        return None
    selector, labels_of = Selector(requirements), known_namespaces or {}
    selected = frozenset(
        name for name, labels in labels_of.items() if selector.matches({**labels, NAMESPACE_NAME: name})
    )
    return SelectedNamespaces(names | selected, frozenset(labels_of), selector)


def _selector(document: Document, path: FieldPath, labels: Mapping[str, str]) -> Selector:
    """The label selector of a rule, with what the API server adds to it for the pod's own labels."""
    selector = document.get("labelSelector")
    lists = {name: text_list(document.get(name), (*path, name)) for name, _ in _KEY_LISTS}
    if selector is None:
        for name, keys in lists.items():
            if keys:
                raise wrong((*path, name), "it needs a labelSelector")
        return Selector()
    both = set(lists["matchLabelKeys"]) & set(lists["mismatchLabelKeys"])
    if both:
        raise wrong((*path, "mismatchLabelKeys"), f"{min(both)} is in matchLabelKeys as well")
    own = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for name, operator in _KEY_LISTS
        for key in lists[name]
        if key in labels
    ]
    return Selector(_requirements(selector, (*path, "labelSelector"), own))


def _requirements(selector: Any, path: FieldPath, more: Sequence[Document] = ()) -> Term:
    """The requirements of a label selector."""
    if not isinstance(selector, Mapping):
        raise wrong(path, "an object is needed")
    labels = texts(selector.get("matchLabels"), (*path, "matchLabels"))
    entries = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    return read_term([*entries, *expressions(selector, path, _LABEL_OPERATORS), *more], path)


def expressions(document: Document, path: FieldPath, operators: Sequence[str]) -> list[Document]:
    """The entries of ``matchExpressions``, or those of another list of requirements."""
    return entries_of(document, "matchExpressions", path, operators)


def entries_of(document: Document, name: str, path: FieldPath, operators: Sequence[str]) -> list[Document]:
    """The requirements of a list: a key, one of the operators, and texts as values."""
    entries: list[Document] = []
    for entry, where in listed(document.get(name), (*path, name)):
        key = text(entry.get("key"), (*where, "key"))
        operator = text(optional_text(entry, "operator", where), (*where, "operator"))
        if operator not in operators:
            raise wrong((*where, "operator"), f"one of {', '.join(operators)} is needed, not {operator!r}")
        values = text_list(entry.get("values"), (*where, "values"))
        read_term([{"key": key, "operator": operator, "values": values}], where)
        entries.append({"key": key, "operator": operator, "values": values})
    return entries


def read_term(entries: Sequence[Document], path: FieldPath) -> Term:
    """Requirements that all hold."""
    try:
        return term(entries)
    except ValueError as error:
        raise wrong(path, str(error)) from None
