"""Resources that a pod takes of a node, by the rules of Kubernetes 1.35: containers, sidecars, overhead, and pod-level
resources.

Errors are ``ValueError`` with a text that begins with the field, as a JSON pointer into the manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockyard.domain.nodes.node_types import CPU, MEMORY, PODS
from stockyard.domain.values.quantities import milli
from stockyard.scheduling.packing.fields import Document, FieldPath, listed, object_at, optional_text, wrong

_ONE_POD = 1000
_HUGE_PAGES = "hugepages-"
SIDECAR = "Always"
"""The ``restartPolicy`` of an init container that goes on beside the others."""


def requests(spec: Document) -> dict[str, int]:
    """Resources that a pod takes of a node, in thousandths, with one of ``pods``.

    The containers and the sidecars together, or an init container beside the sidecars before it if that is more; then
    the overhead. A container's limit stands for a request that is missing. What the pod asks for as a whole stands in
    place of its containers' sum; a limit of the pod makes it ask for that sum, and for the limit itself where no
    container asks for the resource.
    """
    running: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container, path in listed(spec.get("initContainers"), ("spec", "initContainers")):
        amounts = _of_container(container, path)
        if is_sidecar(container, path):
            running = _sum(running, amounts)
            starting = _larger(starting, running)
        else:
            starting = _larger(starting, _sum(running, amounts))
    for container, path in listed(spec.get("containers"), ("spec", "containers")):
        running = _sum(running, _of_container(container, path))
    total = _of_pod(spec, _larger(running, starting))
    total = _sum(total, amounts_at(spec.get("overhead"), ("spec", "overhead")))
    return {**{name: amount for name, amount in total.items() if amount}, PODS: _ONE_POD}


def is_sidecar(container: Document, path: FieldPath) -> bool:
    """Whether an init container goes on beside the containers of its pod."""
    return optional_text(container, "restartPolicy", path) == SIDECAR


def _of_pod(spec: Document, containers: Mapping[str, int]) -> dict[str, int]:
    """Requests of the pod as a whole, where it has any; otherwise the sum of its containers."""
    path: FieldPath = ("spec", "resources")
    resources = object_at(spec, "resources", ("spec",))
    limits, own_requests = (amounts_at(resources.get(name), (*path, name)) for name in ("limits", "requests"))
    for kind, amounts in (("limits", limits), ("requests", own_requests)):
        for name in amounts:
            if name not in (CPU, MEMORY) and not name.startswith(_HUGE_PAGES):
                raise wrong((*path, kind, name), "a pod has only cpu, memory and hugepages-* of its own")
    defaults = {
        name: amount for name, amount in limits.items() if name not in containers or name.startswith(_HUGE_PAGES)
    }
    return {**containers, **defaults, **own_requests}


def _of_container(document: Document, path: FieldPath) -> dict[str, int]:
    resources = object_at(document, "resources", path)
    limits = amounts_at(resources.get("limits"), (*path, "resources", "limits"))
    return limits | amounts_at(resources.get("requests"), (*path, "resources", "requests"))


def amounts_at(quantities: Any, path: FieldPath) -> dict[str, int]:
    """Quantities by resource in thousandths. Raises ``ValueError`` with the place of one that cannot be read."""
    if not isinstance(quantities, Mapping | None):
        raise wrong(path, "resources by name are needed")
    amounts = {}
    for name, quantity in (quantities or {}).items():
        try:
            amounts[str(name)] = milli(quantity)
        except ValueError as error:
            raise wrong((*path, name), str(error)) from None
        if amounts[str(name)] < 0:
            raise wrong((*path, name), f"{quantity!r} is negative")
    return amounts


def _sum(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}


def _larger(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {name: max(first.get(name, 0), second.get(name, 0)) for name in {**first, **second}}
