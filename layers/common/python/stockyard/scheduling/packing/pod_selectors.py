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
    Place,
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


def spread(labels: Mapping[str, str]) -> Callable[[Document, Place], Spread]:
    """The reader of topology spread constraints for a pod with these labels."""

    def read(document: Document, place: Place) -> Spread:
        most = integer(document.get("maxSkew", 1), (*place, "maxSkew"), 1)
        least = document.get("minDomains")
        unsatisfiable = choice(document, "whenUnsatisfiable", place, ("DoNotSchedule", "ScheduleAnyway"))
        if least is not None and unsatisfiable != "DoNotSchedule":
            raise wrong((*place, "minDomains"), "it goes with whenUnsatisfiable DoNotSchedule alone")
        return Spread(
            normal_key(text(document.get("topologyKey"), (*place, "topologyKey"))),
            most,
            _selector(document, place, labels),
            hard=unsatisfiable == "DoNotSchedule",
            min_domains=None if least is None else integer(least, (*place, "minDomains"), 1),
            honors_affinity=choice(document, "nodeAffinityPolicy", place, ("Honor", "Ignore")) == "Honor",
            honors_taints=choice(document, "nodeTaintsPolicy", place, ("Ignore", "Honor")) == "Honor",
        )

    return read


def pod_terms(
    document: Document,
    place: Place,
    namespace: str,
    labels: Mapping[str, str],
    known_namespaces: NamespaceLabels | None,
) -> Iterable[PodTerm]:
    """The terms of a pod's affinity or anti-affinity, the required ones first.

    ``known_namespaces`` are the labels of the namespaces that are known; None where nothing is known of any.
    """
    for required, required_place in listed(document.get(REQUIRED), (*place, REQUIRED)):
        yield _pod_term(required, required_place, 0, namespace, labels, known_namespaces)
    for preferred, preferred_place in listed(document.get(PREFERRED), (*place, PREFERRED)):
        weight = read_weight(preferred, preferred_place)
        inner = object_at(preferred, "podAffinityTerm", preferred_place)
        yield _pod_term(inner, (*preferred_place, "podAffinityTerm"), weight, namespace, labels, known_namespaces)


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


def read_weight(document: Document, place: Place) -> int:
    """The weight of a preference: from 1 to 100."""
    weight = integer(document.get("weight", 1), (*place, "weight"), 1)
    if weight > _MOST_WEIGHT:
        raise wrong((*place, "weight"), f"no more than {_MOST_WEIGHT} is possible")
    return weight


def _pod_term(
    document: Document,
    place: Place,
    weight: int,
    namespace: str,
    labels: Mapping[str, str],
    known_namespaces: NamespaceLabels | None,
) -> PodTerm:
    key = normal_key(text(document.get("topologyKey"), (*place, "topologyKey")))
    names = frozenset(text_list(document.get("namespaces"), (*place, "namespaces")))
    selector = _selector(document, place, labels)
    if document.get("namespaceSelector") is None:
        return PodTerm(key, selector, names or frozenset({namespace}), weight)
    return PodTerm(key, selector, _namespaces(document, place, names, known_namespaces), weight)


def _namespaces(
    document: Document, place: Place, names: frozenset[str], known_namespaces: NamespaceLabels | None
) -> Namespaces:
    """The namespaces that a term names or selects; None for all of them.

    A namespace whose labels are not known has the label of its name alone. Where nothing is known of any, a selector of
    other labels counts the pods of all.
    """
    here = (*place, "namespaceSelector")
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


def _selector(document: Document, place: Place, labels: Mapping[str, str]) -> Selector:
    """The label selector of a rule, with what the API server adds to it for the pod's own labels."""
    selector = document.get("labelSelector")
    lists = {name: text_list(document.get(name), (*place, name)) for name, _ in _KEY_LISTS}
    if selector is None:
        for name, keys in lists.items():
            if keys:
                raise wrong((*place, name), "it needs a labelSelector")
        return Selector()
    both = set(lists["matchLabelKeys"]) & set(lists["mismatchLabelKeys"])
    if both:
        raise wrong((*place, "mismatchLabelKeys"), f"{min(both)} is in matchLabelKeys as well")
    own = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for name, operator in _KEY_LISTS
        for key in lists[name]
        if key in labels
    ]
    return Selector(_requirements(selector, (*place, "labelSelector"), own))


def _requirements(selector: Any, place: Place, more: Sequence[Document] = ()) -> Term:
    """The requirements of a label selector."""
    if not isinstance(selector, Mapping):
        raise wrong(place, "an object is needed")
    labels = texts(selector.get("matchLabels"), (*place, "matchLabels"))
    entries = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    return read_term([*entries, *expressions(selector, place, _LABEL_OPERATORS), *more], place)


def expressions(document: Document, place: Place, operators: Sequence[str]) -> list[Document]:
    """The entries of ``matchExpressions``, or those of another list of requirements."""
    return entries_of(document, "matchExpressions", place, operators)


def entries_of(document: Document, name: str, place: Place, operators: Sequence[str]) -> list[Document]:
    """The requirements of a list: a key, one of the operators, and texts as values."""
    entries: list[Document] = []
    for entry, where in listed(document.get(name), (*place, name)):
        key = text(entry.get("key"), (*where, "key"))
        operator = text(optional_text(entry, "operator", where), (*where, "operator"))
        if operator not in operators:
            raise wrong((*where, "operator"), f"one of {', '.join(operators)} is needed, not {operator!r}")
        values = text_list(entry.get("values"), (*where, "values"))
        read_term([{"key": key, "operator": operator, "values": values}], where)
        entries.append({"key": key, "operator": operator, "values": values})
    return entries


def read_term(entries: Sequence[Document], place: Place) -> Term:
    """Requirements that all hold."""
    try:
        return term(entries)
    except ValueError as error:
        raise wrong(place, str(error)) from None
