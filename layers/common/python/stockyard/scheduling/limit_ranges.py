"""LimitRanges: what containers request that say nothing, as the API server completes the pods of a namespace.

Errors are ``ValueError`` with a text that begins with the field, as a JSON pointer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.scheduling.packing.fields import Document, FieldPath, listed, object_at, optional_text
from stockyard.scheduling.packing.pod_requests import amounts_at

Defaults = Mapping[str, Any]
"""Quantities by resource."""
_CONTAINER = "Container"
_FIRST = ("defaultRequest", "default", "max", "min")
"""The fields of a limit, by which of them says first what is requested: a greatest amount is the limit of a container
that has none, and what is limited is requested."""


def read_defaults(limit_range: Document, path: FieldPath) -> Defaults:
    """Read the requests of a container that names none itself, in the namespace of a LimitRange."""
    defaults: dict[str, Any] = {}
    limits = object_at(limit_range, "spec", path).get("limits")
    for limit, where in listed(limits, (*path, "spec", "limits")):
        own: dict[str, Any] = {}
        for name in _FIRST:
            amounts_at(limit.get(name), (*where, name))
            own = {**(limit.get(name) or {}), **own}
        if optional_text(limit, "type", where) == _CONTAINER:
            defaults |= own
    return defaults


def with_requests(spec: Document, defaults: Defaults) -> Document:
    """The specification of a pod with the requests that its containers do not say. Where the pod itself has resources,
    its containers get none."""
    if not defaults or spec.get("resources"):
        return spec
    kinds = [name for name in ("containers", "initContainers") if isinstance(spec.get(name), list)]
    return {**spec, **{name: _all_with_requests(spec[name], defaults) for name in kinds}}


def _all_with_requests(containers: Sequence[Any], defaults: Defaults) -> list[Any]:
    return [_container(container, defaults) for container in containers]


def _container(container: Any, defaults: Defaults) -> Any:
    """With its requests. One that is not of the right form is left for the reader of pods, who names the fault."""
    resources = container.get("resources") or {} if isinstance(container, Mapping) else None
    if not isinstance(resources, Mapping):
        return container
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if not isinstance(limits, Mapping) or not isinstance(requests, Mapping):
        return container
    missing = {name: quantity for name, quantity in defaults.items() if name not in {**limits, **requests}}
    return {**container, "resources": {**resources, "requests": {**requests, **missing}}}
