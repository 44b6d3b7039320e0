"""Differences between the objects of two choices of profiles, field by field. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from stockyard.domain.profiles.pack_templates import Object
from stockyard.domain.values.pointers import pointer

MOST_FIELDS = 20
"""Of one object that are named; one with more says only that it is different."""
MOST_TEXT = 400
"""Characters of a value; of a longer one its digest is said."""
_HIDDEN = frozenset({"Secret"})
"""Kinds whose values are not told."""
_ABSENT = object()


def object_changes(name: str, before: Object, after: Object) -> list[dict[str, Any]]:
    """The fields of an object that differ, below ``/objects/NAME``. A list of another length is one field."""
    if after["kind"] in _HIDDEN or before["kind"] in _HIDDEN:
        return [_change((name,), _digest(before), _digest(after))]
    fields = [_change((name, *path), _value(old), _value(new)) for path, old, new in _fields(before, after)]
    return fields if len(fields) <= MOST_FIELDS else [_change((name,), _digest(before), _digest(after))]


def _fields(before: Any, after: Any) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    pairs: list[tuple[str | int, Any, Any]]
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        names = [*before, *(name for name in after if name not in before)]
        pairs = [(name, before.get(name, _ABSENT), after.get(name, _ABSENT)) for name in names]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [(index, *pair) for index, pair in enumerate(zip(before, after, strict=True))]
    else:
        if before != after:
            yield (), before, after
        return
    for step, old, new in pairs:
        yield from (((step, *path), earlier, later) for path, earlier, later in _fields(old, new))


def _change(path: tuple[str | int, ...], before: Any, after: Any) -> dict[str, Any]:
    return {"pointer": pointer("objects", *path), "before": before, "after": after}


def _value(value: Any) -> Any:
    if value is _ABSENT:
        return None
    return value if len(json.dumps(value)) <= MOST_TEXT else _digest(value)


def _digest(value: Any) -> str:
    return f"sha256:{hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()}"
