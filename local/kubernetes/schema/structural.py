"""Objects and the structural schemas that definitions of kinds have: types, fields that are not there, and defaults.

The words are those of an API server, see ``tests/kubernetes/test_custom_resources.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from local.kubernetes.schema.types import Kind, named, types
from local.kubernetes.store import copied

Schema = Mapping[str, Any]
OPEN, INT_OR_STRING = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"
_OF_KINDS = {"string": "string", "time": "string", "bool": "boolean", "int": "integer", "double": "number"}
_GO = {"object": "map", "array": "list", "boolean": "boolean"}
"""The types of a schema as server-side apply names them."""


@cache
def meta_schema() -> Schema:
    """The schema of the metadata of all objects."""
    return _of_kind("meta/v1.ObjectMeta")


def _of_kind(kind: Kind) -> Schema:
    if isinstance(kind, list):
        inner = _of_kind(kind[1])
        is_map = kind[0] == "map"
        return {"type": "object", "additionalProperties": inner} if is_map else {"type": "array", "items": inner}
    if kind in types() and named(kind):
        return {"type": "object", "properties": {name: _of_kind(each.kind) for name, each in named(kind).items()}}
    return {"type": _OF_KINDS[kind]} if kind in _OF_KINDS else {OPEN: True}


def whole(schema: Schema) -> Schema:
    """The schema of a kind with what each object has besides."""
    texts = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    return {**schema, "properties": {**schema.get("properties", {}), **texts, "metadata": meta_schema()}}


def misfit(value: Any, schema: Schema) -> str | None:
    """The first field that server-side apply refuses before it looks at values: its path, and why."""
    return next(_misfits(value, schema, ""), None)


def _misfits(value: Any, schema: Schema, path: str) -> Iterator[str]:
    kind = schema.get("type")
    if value is None or kind is None:
        return
    if kind == "object" and isinstance(value, Mapping):
        for name, item in value.items():
            inner = field_schema(schema, name)
            if inner is None:
                yield f"{path}.{name}: field not declared in schema"
            else:
                yield from _misfits(item, inner, f"{path}.{name}")
    elif kind == "array" and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _misfits(item, schema.get("items", {}), f"{path}[{index}]")
    elif kind in ("integer", "number"):
        if isinstance(value, bool) or not isinstance(value, int | float):
            names = {str: "string", bool: "bool", list: "list"}
            yield f"{path}: expected numeric (int or float), got {names.get(type(value), 'map')}"
    elif kind in ("object", "array", "boolean") and not (kind == "boolean" and isinstance(value, bool)):
        yield f"{path}: expected {_GO[kind]}, got &{{{_printed(value)}}}"
    elif kind == "string" and not isinstance(value, str):
        yield f"{path}: expected string, got &value.valueUnstructured{{Value:{_printed(value)}}}"


def _printed(value: Any) -> str:
    """The value as Go prints it."""
    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{name}:{_printed(item)}' for name, item in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_printed, value))}]"
    return value if isinstance(value, str) else json.dumps(value)


def field_schema(schema: Schema, name: str) -> Schema | None:
    """The schema of an object's field; None for one that is not there."""
    properties = schema.get("properties") or {}
    if name in properties:
        return properties[name]  # type: ignore[no-any-return]
    any_field = schema.get("additionalProperties")
    if any_field:
        return any_field if isinstance(any_field, Mapping) else {OPEN: True}
    return {OPEN: True} if schema.get(OPEN) else None


def unknown_fields(value: Any, schema: Schema, path: str = "") -> Iterator[str]:
    """Paths of fields that the schema does not have."""
    if isinstance(value, Mapping) and ("properties" in schema or "additionalProperties" in schema or "type" in schema):
        for name, item in value.items():
            inner, here = field_schema(schema, name), f"{path}.{name}" if path else name
            if inner is None:
                yield here
            else:
                yield from unknown_fields(item, inner, here)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from unknown_fields(item, schema.get("items", {OPEN: True}), f"{path}[{index}]")


def stored(value: Any, schema: Schema) -> Any:
    """A copy as the API stores it: without fields that the schema does not have, and with its defaults. A null goes
    where the field has a default and may not be null."""
    if isinstance(value, Mapping) and schema.get("type") == "object":
        result = {}
        for name, item in value.items():
            inner = field_schema(schema, name)
            if inner is None or (item is None and "default" in inner and not inner.get("nullable")):
                continue
            result[name] = stored(item, inner)
        for name, inner in (schema.get("properties") or {}).items():
            if name not in result and "default" in inner:
                result[name] = copied(inner["default"])
        return result
    if isinstance(value, list):
        return [stored(item, schema.get("items", {OPEN: True})) for item in value]
    return copied(value)
