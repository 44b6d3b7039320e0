"""Pods of Kubernetes as the packer reads them: ``v1`` Pods, and the templates of what makes pods.

Errors are ``ValueError`` with a text that begins with the field, as a JSON pointer into the manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from stockyard.domain.node_types import PODS
from stockyard.domain.pointers import pointer
from stockyard.domain.quantities import milli
from stockyard.scheduling.packing.model import (
    HostPort,
    Pod,
    PodTerm,
    Preference,
    Selector,
    Spread,
    Term,
    Toleration,
    term,
    whole_number,
)

Document = Mapping[str, Any]
Place = tuple[str | int, ...]
T = TypeVar("T")
POD_GROUP = "scheduling.x-k8s.io/pod-group"
"""The label that coscheduling knows a gang by."""
_ONE_POD = 1000
_EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - it is compared, nothing is bound to it
_EFFECTS = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")


def read_pod(manifest: Document, volumes: Sequence[Term] = ()) -> Pod:
    """The pod of a ``v1`` Pod, or of a pod template with ``metadata`` and ``spec``.

    ``volumes`` are the alternatives of where its volumes can be, which the pod itself does not say.
    """
    metadata, spec = object_at(manifest, "metadata", ()), object_at(manifest, "spec", ())
    labels = _texts(metadata.get("labels"), ("metadata", "labels"))
    namespace = _text(metadata.get("namespace", "default"), ("metadata", "namespace"))
    affinity, place = object_at(spec, "affinity", ("spec",)), ("spec", "affinity")
    node = object_at(affinity, "nodeAffinity", place)
    pods, anti = object_at(affinity, "podAffinity", place), object_at(affinity, "podAntiAffinity", place)
    return Pod(
        namespace,
        tuple(sorted(labels.items())),
        tuple(sorted(requests(spec).items())),
        _required(spec, node, (*place, "nodeAffinity")),
        tuple(_preferences(node, (*place, "nodeAffinity"))),
        tuple(_each(spec.get("tolerations"), ("spec", "tolerations"), _toleration)),
        tuple(_each(spec.get("topologySpreadConstraints"), ("spec", "topologySpreadConstraints"), _spread(labels))),
        tuple(_pod_terms(pods, (*place, "podAffinity"), namespace, labels)),
        tuple(_pod_terms(anti, (*place, "podAntiAffinity"), namespace, labels)),
        tuple(_ports(spec)),
        tuple(volumes),
        _integer(spec.get("priority", 0), ("spec", "priority")),
        f"{namespace}/{labels[POD_GROUP]}" if POD_GROUP in labels else "",
    )


# --- resources ------------------------------------------------------------------------------------------------------


def requests(spec: Document) -> dict[str, int]:
    """What a pod takes of a node, in thousandths, with one of ``pods``.

    The containers and the sidecars together, or an init container beside the sidecars before it if that is more; then
    the overhead. A limit stands for a request that is missing; the pod's own resources for those of its containers.
    """
    running: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container, place in _listed(spec.get("initContainers"), ("spec", "initContainers")):
        amounts = _requests(container, place)
        if container.get("restartPolicy") == "Always":
            running = _sum(running, amounts)
            starting = _larger(starting, running)
        else:
            starting = _larger(starting, _sum(running, amounts))
    for container, place in _listed(spec.get("containers"), ("spec", "containers")):
        running = _sum(running, _requests(container, place))
    total = _larger(running, starting) | _requests(spec, ("spec",))
    total = _sum(total, _amounts(spec.get("overhead"), ("spec", "overhead")))
    return {**{name: amount for name, amount in total.items() if amount}, PODS: _ONE_POD}


def _requests(document: Document, place: Place) -> dict[str, int]:
    resources = object_at(document, "resources", place)
    limits = _amounts(resources.get("limits"), (*place, "resources", "limits"))
    return limits | _amounts(resources.get("requests"), (*place, "resources", "requests"))


def _amounts(quantities: Any, place: Place) -> dict[str, int]:
    if not isinstance(quantities, Mapping | None):
        raise wrong(place, "resources by name are needed")
    amounts = {}
    for name, quantity in (quantities or {}).items():
        try:
            amounts[str(name)] = milli(quantity)
        except ValueError as error:
            raise wrong((*place, name), str(error)) from None
        if amounts[str(name)] < 0:
            raise wrong((*place, name), f"{quantity!r} is negative")
    return amounts


def _sum(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}


def _larger(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {name: max(first.get(name, 0), second.get(name, 0)) for name in {**first, **second}}


# --- nodes ----------------------------------------------------------------------------------------------------------


def _required(spec: Document, node: Document, place: Place) -> tuple[Term, ...]:
    selected = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in _texts(spec.get("nodeSelector"), ("spec", "nodeSelector")).items()
    ]
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    alternatives = object_at(node, key, place).get("nodeSelectorTerms")
    if alternatives is None:
        return (_term(selected, ("spec", "nodeSelector")),)
    terms = _listed(alternatives, (*place, key, "nodeSelectorTerms"))
    # An alternative without requirements selects nothing.
    return tuple(
        _term([*selected, *entries], term_place)
        for document, term_place in terms
        if (entries := _expressions(document, term_place))
    )


def _preferences(node: Document, place: Place) -> Iterable[Preference]:
    key = "preferredDuringSchedulingIgnoredDuringExecution"
    for document, preference_place in _listed(node.get(key), (*place, key)):
        preference = object_at(document, "preference", preference_place)
        entries = _expressions(preference, (*preference_place, "preference"))
        weight = _integer(document.get("weight", 1), (*preference_place, "weight"))
        if entries:
            yield Preference(weight, _term(entries, preference_place))


def _expressions(document: Document, place: Place) -> list[Document]:
    fields = [
        {**entry, "key": {"metadata.name": "kubernetes.io/hostname"}.get(str(entry.get("key")), entry.get("key"))}
        for entry, _ in _listed(document.get("matchFields"), (*place, "matchFields"))
    ]
    return [entry for entry, _ in _listed(document.get("matchExpressions"), (*place, "matchExpressions"))] + fields


def _term(entries: Sequence[Document], place: Place) -> Term:
    try:
        return term(entries)
    except ValueError as error:
        raise wrong(place, str(error)) from None


def _toleration(document: Document, place: Place) -> Toleration:
    operator, effect = document.get("operator") or "Equal", document.get("effect") or ""
    if operator not in ("Equal", "Exists", "Gt", "Lt"):
        raise wrong((*place, "operator"), "Equal, Exists, Gt or Lt is needed")
    if operator in ("Gt", "Lt") and whole_number(str(document.get("value") or "")) is None:
        raise wrong((*place, "value"), f"{operator} needs a whole number")
    if effect not in _EFFECTS:
        raise wrong((*place, "effect"), f"one of {', '.join(_EFFECTS[1:])} is needed")
    return Toleration(str(document.get("key") or ""), operator, str(document.get("value") or ""), effect)


def _ports(spec: Document) -> Iterable[HostPort]:
    for container, place in _listed(spec.get("containers"), ("spec", "containers")):
        for port, port_place in _listed(container.get("ports"), (*place, "ports")):
            number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") else None)
            if number:
                address = str(port.get("hostIP") or "")
                protocol = str(port.get("protocol") or "TCP")
                yield HostPort(
                    _integer(number, (*port_place, "hostPort")), protocol, "" if address == _EVERY_ADDRESS else address
                )


# --- other pods -----------------------------------------------------------------------------------------------------


def _spread(labels: Mapping[str, str]) -> Callable[[Document, Place], Spread]:
    def read(document: Document, place: Place) -> Spread:
        most = _integer(document.get("maxSkew", 1), (*place, "maxSkew"))
        if most < 1:
            raise wrong((*place, "maxSkew"), "1 or more is needed")
        least = document.get("minDomains")
        return Spread(
            _text(document.get("topologyKey"), (*place, "topologyKey")),
            most,
            _selector(document.get("labelSelector"), place, _label_keys(document, place, labels)),
            hard=document.get("whenUnsatisfiable", "DoNotSchedule") != "ScheduleAnyway",
            min_domains=None if least is None else _integer(least, (*place, "minDomains")),
            honors_affinity=document.get("nodeAffinityPolicy", "Honor") != "Ignore",
            honors_taints=document.get("nodeTaintsPolicy", "Ignore") == "Honor",
        )

    return read


def _pod_terms(document: Document, place: Place, namespace: str, labels: Mapping[str, str]) -> Iterable[PodTerm]:
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    for required, required_place in _listed(document.get(key), (*place, key)):
        yield _pod_term(required, required_place, 0, namespace, labels)
    key = "preferredDuringSchedulingIgnoredDuringExecution"
    for preferred, preferred_place in _listed(document.get(key), (*place, key)):
        weight = max(1, _integer(preferred.get("weight", 1), (*preferred_place, "weight")))
        inner = object_at(preferred, "podAffinityTerm", preferred_place)
        yield _pod_term(inner, (*preferred_place, "podAffinityTerm"), weight, namespace, labels)


def _pod_term(document: Document, place: Place, weight: int, namespace: str, labels: Mapping[str, str]) -> PodTerm:
    key = _text(document.get("topologyKey"), (*place, "topologyKey"))
    listed = document.get("namespaces") or ()
    if not isinstance(listed, list | tuple):
        raise wrong((*place, "namespaces"), "a list of names is needed")
    # Labels of namespaces are not known here: a selector of them counts the pods of all.
    everywhere = document.get("namespaceSelector") is not None
    namespaces = None if everywhere else frozenset(map(str, listed)) or frozenset({namespace})
    selector = _selector(document.get("labelSelector"), place, _label_keys(document, place, labels))
    return PodTerm(key, selector, namespaces, weight)


def _label_keys(document: Document, place: Place, labels: Mapping[str, str]) -> list[Document]:
    """Requirements that pods have the same values of some labels."""
    listed = document.get("matchLabelKeys") or ()
    if not isinstance(listed, list | tuple):
        raise wrong((*place, "matchLabelKeys"), "a list of keys is needed")
    keys = [str(key) for key in listed]
    return [{"key": key, "operator": "In", "values": [labels[key]]} for key in keys if key in labels]


def _selector(document: Any, place: Place, more: Sequence[Document]) -> Selector:
    if document is None:
        return Selector()
    here = (*place, "labelSelector")
    if not isinstance(document, Mapping):
        raise wrong(here, "an object is needed")
    entries = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in _texts(document.get("matchLabels"), (*here, "matchLabels")).items()
    ]
    expressions = [entry for entry, _ in _listed(document.get("matchExpressions"), (*here, "matchExpressions"))]
    return Selector(_term([*entries, *expressions, *more], here))


# --- documents ------------------------------------------------------------------------------------------------------


def object_at(document: Document, key: str, place: Place) -> Document:
    """The object under a key; empty where there is none. Raises ``ValueError`` with its place."""
    value = document.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong((*place, key), "an object is needed")
    return value


def _listed(value: Any, place: Place) -> list[tuple[Document, Place]]:
    if not isinstance(value, list | tuple | None):
        raise wrong(place, "a list is needed")
    for number, document in enumerate(value or ()):
        if not isinstance(document, Mapping):
            raise wrong((*place, number), "an object is needed")
    return [(document, (*place, number)) for number, document in enumerate(value or ())]


def _each(value: Any, place: Place, read: Callable[[Document, Place], T]) -> list[T]:
    return [read(document, where) for document, where in _listed(value, place)]


def _texts(value: Any, place: Place) -> dict[str, str]:
    if not isinstance(value, Mapping | None) or not all(isinstance(text, str) for text in (value or {}).values()):
        raise wrong(place, "texts by name are needed")
    return {str(key): text for key, text in (value or {}).items()}


def _text(value: Any, place: Place) -> str:
    if not isinstance(value, str) or not value:
        raise wrong(place, "a text is needed")
    return value


def _integer(value: Any, place: Place) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong(place, "an integer is needed")
    return value


def wrong(place: Place, text: str) -> ValueError:
    """The error of a document, with the pointer to the place."""
    return ValueError(f"{pointer(*place)}: {text}")
