"""Check of a body's fields: those that a type does not have, and values of another kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from local.kubernetes.schema.types import Kind, named, type_of, types
from local.kubernetes.store import StatusError

_KINDS: Mapping[str, tuple[type, ...]] = {"string": (str,), "int": (int,), "bool": (bool,), "double": (int, float)}
_WORKLOADS = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"})


def check(document: Mapping[str, Any], *, strict: bool) -> None:
    """Raises ``StatusError``: 400 for a value of another kind than its field's, and where ``strict`` for a field that
    is not there; 422 for a workload or pod without what it needs."""
    kind = str(document.get("kind", ""))
    name = type_of(str(document.get("apiVersion", "")), kind)
    faults = list(_faults(document, name, "")) if name else []
    wrong = [fault for fault, is_unknown in faults if not is_unknown]
    if wrong:
        raise StatusError(
            400, f'{kind} in version "{document["apiVersion"]}" cannot be handled as a {kind}: {wrong[0]}'
        )
    unknown = [fault for fault, is_unknown in faults if is_unknown]
    if strict and unknown:
        raise StatusError(400, f"strict decoding error: {', '.join(unknown)}")
    absent = next(_absent(document, kind), None) if name else None
    if absent:
        subject = f'{kind} "{(document.get("metadata") or {}).get("name", "")}"'
        text = f"{subject} is invalid: {absent}: Required value"
        raise StatusError(422, text)


def _faults(value: Any, kind: Kind, path: str) -> Iterator[tuple[str, bool]]:
    """Sentence of each fault, and whether it is that of a field that is not there."""
    if value is None:
        return
    if isinstance(kind, list):
        inner = kind[1][1] if kind[0] == "wrapped" else kind[1]
        expected = dict if kind[0] == "map" else list
        if not isinstance(value, expected):
            yield f"{path} has to be {'an object' if expected is dict else 'a list'}", False
            return
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _faults(item, inner, f"{path}.{key}" if isinstance(value, dict) else f"{path}[{key}]")
    elif kind in types():
        if not isinstance(value, dict):
            yield f"{path} has to be an object", False
            return
        yield from _of_object(value, kind, path)
    elif kind in _KINDS and (not isinstance(value, _KINDS[kind]) or (kind == "int" and isinstance(value, bool))):
        yield f"{path} has to be of the kind {kind}, not {type(value).__name__}", False


def _of_object(value: Mapping[str, Any], kind: str, path: str) -> Iterator[tuple[str, bool]]:
    fields = named(kind)
    for name, item in value.items() if fields else ():
        here = f"{path}.{name}" if path else name
        if name in fields:
            yield from _faults(item, fields[name].kind, here)
        elif path or name not in ("apiVersion", "kind"):
            yield f'unknown field "{here}"', True


def _absent(document: Mapping[str, Any], kind: str) -> Iterator[str]:
    """The fields that a controller or the scheduler cannot be without."""
    spec = document.get("spec") or {}
    if kind == "Pod":
        yield from _of_pod(spec, "spec")
    elif kind in _WORKLOADS:
        if kind != "Job" and not spec.get("selector"):
            yield "spec.selector"
        yield from _of_pod((spec.get("template") or {}).get("spec") or {}, "spec.template.spec")


def _of_pod(spec: Mapping[str, Any], path: str) -> Iterator[str]:
    containers = spec.get("containers") or []
    if not containers:
        yield f"{path}.containers"
    for number, container in enumerate(containers):
        yield from (f"{path}.containers[{number}].{name}" for name in ("name", "image") if not container.get(name))
