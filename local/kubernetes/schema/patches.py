"""Patches that kubectl sends beside a merge patch: strategic merge, by the keys of lists, and JSON patch (RFC 6902)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from local.kubernetes.schema.types import Field, Kind, named
from local.kubernetes.store import Object, StatusError, copied

STRATEGIC = "application/strategic-merge-patch+json"
_DIRECTIVE, _RETAIN = "$patch", "$retainKeys"
_ORDER, _DELETE = "$setElementOrder/", "$deleteFromPrimitiveList/"


def strategic(current: Mapping[str, Any], patch: Mapping[str, Any], type_name: str) -> Object:
    """A strategic merge patch on a copy of an object of that type."""
    if patch.get(_DIRECTIVE) == "replace":
        return {name: copied(value) for name, value in patch.items() if name != _DIRECTIVE}
    if patch.get(_DIRECTIVE) == "delete":
        return {}
    fields, result = named(type_name), dict(copied(dict(current)))
    for name, value in patch.items():
        if name.startswith("$"):
            continue
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            before = result.get(name)
            result[name] = strategic(before if isinstance(before, Mapping) else {}, value, _inner(fields.get(name)))
        elif isinstance(value, list) and (field := fields.get(name)) and field.merge_key is not None:
            result[name] = _merged_list(result.get(name) or [], value, field)
        else:
            result[name] = copied(value)
    for name, value in patch.items():
        if name.startswith(_DELETE) and (list_name := name.removeprefix(_DELETE)) in result:
            result[list_name] = [item for item in result[list_name] if item not in value]
        if name.startswith(_ORDER) and (list_name := name.removeprefix(_ORDER)) in result:
            field = fields.get(list_name)
            result[list_name] = _ordered(result[list_name], value, (field.merge_key if field else "") or "")
    if _RETAIN in patch:
        result = {name: value for name, value in result.items() if name in patch[_RETAIN]}
    return result


def _inner(field: Field | None) -> str:
    """The type of a field that is an object; empty for one that is not known."""
    kind: Kind = field.kind if field else ""
    while isinstance(kind, list):
        kind = kind[1]
    return kind


def _merged_list(before: Sequence[Any], patch: Sequence[Any], field: Field) -> list[Any]:
    key = field.merge_key or ""
    if not key:
        return [*before, *(item for item in patch if item not in before)]
    if {_DIRECTIVE: "replace"} in patch:
        return [copied(item) for item in patch if item != {_DIRECTIVE: "replace"}]
    result = [copied(item) for item in before]
    for item in patch:
        if key not in item:
            raise StatusError(400, f"map: {dict(item)} does not contain declared merge key: {key}")
        index = next((number for number, old in enumerate(result) if old.get(key) == item[key]), None)
        if item.get(_DIRECTIVE) == "delete":
            result = [old for old in result if old.get(key) != item[key]]
        elif index is None:
            result.append(copied(item))
        else:
            result[index] = strategic(result[index], item, _inner(field))
    return result


def _ordered(items: Sequence[Any], order: Sequence[Any], key: str) -> list[Any]:
    """The items in that order; those that it does not name come last."""
    names = [item[key] if key else item for item in order]
    indexes = {str(name): number for number, name in enumerate(names)}
    return sorted(items, key=lambda item: indexes.get(str(item.get(key) if key else item), len(indexes)))


def json_patched(current: Object, operations: Any) -> Object:
    """A JSON patch on a copy. Raises ``StatusError`` 422 for an operation that cannot be done, 400 for no patch."""
    if not isinstance(operations, list) or not all(isinstance(each, dict) and "op" in each for each in operations):
        raise StatusError(400, "error decoding patch: a JSON patch is a list of operations")
    result: Any = copied(current)
    for number, operation in enumerate(operations):
        try:
            result = _operated(result, operation)
        except (KeyError, IndexError, ValueError, TypeError):
            pointer = operation.get("path", "")
            raise StatusError(422, f"the server rejected our request: operation {number} at {pointer!r}") from None
    document: Object = result
    return document


def _operated(document: Any, operation: Mapping[str, Any]) -> Any:
    name, path = operation["op"], _steps(operation["path"])
    if name == "test":
        if _at(document, path) != operation["value"]:
            raise ValueError("the value is another one")
        return document
    if name in ("move", "copy"):
        value = copied(_at(document, _steps(operation["from"])))
        document = _without(document, _steps(operation["from"])) if name == "move" else document
        return _with(document, path, value, replace=False)
    if name == "remove":
        return _without(document, path)
    if name not in ("add", "replace"):
        raise ValueError(f"there is no operation {name}")
    if name == "replace":
        _at(document, path)
    return _with(document, path, copied(operation["value"]), replace=name == "replace")


def _steps(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _at(value: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def _with(document: Any, steps: Sequence[str], value: Any, *, replace: bool) -> Any:
    if not steps:
        return value
    parent, last = _at(document, steps[:-1]), steps[-1]
    if not isinstance(parent, list):
        parent[last] = value
    elif replace:
        parent[int(last)] = value
    else:
        parent.insert(len(parent) if last == "-" else int(last), value)
    return document


def _without(document: Any, steps: Sequence[str]) -> Any:
    parent, last = _at(document, steps[:-1]), steps[-1]
    del parent[int(last) if isinstance(parent, list) else last]
    return document
