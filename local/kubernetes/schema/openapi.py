"""The OpenAPI documents of a simulated Kubernetes API: what kubectl reads before it sends, and what it explains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from local.kubernetes.resources import Resource
from local.kubernetes.schema.types import Field, Kind, named, type_of, types
from local.kubernetes.store import Object

ROOT = "/openapi/v3"
_ABOUT = "The simulated API names fields and their kinds; what they mean is in the reference on kubernetes.io."
_SCALARS: Mapping[str, Object] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "quantity": {"type": "string"},
    "intstr": {"type": "string", "format": "int-or-string"},
    "time": {"type": "string", "format": "date-time"},
    "duration": {"type": "string"},
}
_REFERENCE = "#/components/schemas/"


def document(path: str, resources: Sequence[Resource]) -> Object | None:
    """The document at a path; None where there is none."""
    by_path: dict[str, list[Resource]] = {}
    for resource in resources:
        by_path.setdefault(f"{'apis' if resource.group else 'api'}/{resource.api_version}", []).append(resource)
    if path == ROOT:
        return {"paths": {name: {"serverRelativeURL": f"{ROOT}/{name}"} for name in by_path}}
    served = by_path.get(path.removeprefix(f"{ROOT}/"))
    return None if served is None else _of_version(path.removeprefix(ROOT), served)


def _of_version(prefix: str, resources: Sequence[Resource]) -> Object:
    schemas: dict[str, Object] = {}
    paths: dict[str, Object] = {}
    for resource in resources:
        name = type_of(resource.api_version, resource.kind)
        about = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        schema_name = name.replace("/", ".") or f"{resource.api_version.replace('/', '.')}.{resource.kind}"
        for each in _types(name):
            schemas.setdefault(each.replace("/", "."), _schema(each))
        schemas[schema_name] = {**_root(name), "x-kubernetes-group-version-kind": [about]}
        scope = "/namespaces/{namespace}" if resource.namespaced else ""
        operation = {"x-kubernetes-group-version-kind": about, "responses": {"200": _answer(schema_name)}}
        strict = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
        collection = f"{prefix}{scope}/{resource.name}"
        paths[collection] = {
            "get": {**operation, "x-kubernetes-action": "list"},
            "post": {**operation, "parameters": [strict]},
        }
        paths[f"{collection}/{{name}}"] = {
            "get": {**operation, "x-kubernetes-action": "get"},
            "put": {**operation, "parameters": [strict]},
            "patch": {**operation, "parameters": [strict]},
        }
    info = {"title": "Kubernetes", "version": "simulated"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _answer(schema: str) -> Object:
    return {"description": "OK", "content": {"application/json": {"schema": {"$ref": f"{_REFERENCE}{schema}"}}}}


def _root(name: str) -> Object:
    """The schema of a kind. One whose fields are not known takes all of them."""
    texts = {part: {"type": "string", "description": ""} for part in ("apiVersion", "kind")}
    if not name:
        return {
            "type": "object",
            "description": _ABOUT,
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": texts,
        }
    own = _schema(name)
    return {**own, "description": _ABOUT, "properties": {**texts, **own["properties"]}}


def _schema(name: str) -> Object:
    return {
        "type": "object",
        "description": "",
        "properties": {key: _of_field(each) for key, each in named(name).items()},
    }


def _of_field(field: Field) -> Object:
    schema = _of_kind(field.kind)
    return {"allOf": [schema], "description": "", "default": {}} if "$ref" in schema else {**schema, "description": ""}


def _of_kind(kind: Kind) -> Object:
    if isinstance(kind, list):
        if kind[0] == "map":
            return {"type": "object", "additionalProperties": _of_kind(kind[1])}
        return {"type": "array", "items": _of_kind(kind[1][1] if kind[0] == "wrapped" else kind[1])}
    if kind == "raw":
        return {"type": "object"}
    return dict(_SCALARS.get(kind) or {"$ref": f"{_REFERENCE}{kind.replace('/', '.')}"})


def _types(name: str) -> Iterator[str]:
    """A type and all that its fields are made of."""
    visited_names, ahead = set[str](), [name] if name else []
    while ahead:
        each = ahead.pop()
        if each in visited_names:
            continue
        visited_names.add(each)
        yield each
        for field in named(each).values():
            kind: Any = field.kind
            while isinstance(kind, list):
                kind = kind[1]
            ahead += [kind] if kind in types() else []
