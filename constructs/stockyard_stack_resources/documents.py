"""Comparison of documents: what a change has to say, and whether a record says it already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def merge_patch(new: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON merge patch from ``old`` to ``new``: the values that differ, and null for what there is no more."""
    patch: dict[str, Any] = dict.fromkeys(old.keys() - new.keys())
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := merge_patch(value, before):
                patch[key] = inner
        elif key not in old or value != before:
            patch[key] = value
    return patch


def still_to_say(
    patch: Mapping[str, Any], old: Mapping[str, Any], record: Mapping[str, Any], unset: Mapping[str, Any]
) -> dict[str, Any]:
    """Part of a merge patch from ``old`` that a record does not show yet.

    A field is only taken away where the record still has the old value: a change that was refused has left none. It
    gets its value in ``unset``, or null where there is none.
    """
    unsaid: dict[str, Any] = {}
    for key, value in patch.items():
        before, beside = old.get(key), record.get(key)
        if value is None and key in old:
            if is_shown(before, beside):
                unsaid[key] = unset.get(key)
        elif isinstance(value, Mapping) and isinstance(beside, Mapping):
            deeper = [part if isinstance(part, Mapping) else {} for part in (before, unset.get(key))]
            if inner := still_to_say(value, deeper[0], beside, deeper[1]):
                unsaid[key] = inner
        elif not is_shown(value, beside):
            unsaid[key] = value
    return unsaid


def is_shown(value: Any, view: Any) -> bool:
    """Whether a record that shows ``view`` is as ``value`` asks; fields that it does not name may be anything."""
    if isinstance(value, Mapping):
        return isinstance(view, Mapping) and all(is_shown(item, view.get(key)) for key, item in value.items())
    if isinstance(value, list):
        return (
            isinstance(view, list)
            and len(value) == len(view)
            and all(is_shown(*pair) for pair in zip(value, view, strict=True))
        )
    return bool(value == view)


def differences(new: Mapping[str, Any], old: Mapping[str, Any], pointer: str = "") -> Iterator[str]:
    """JSON pointers of the fields whose values differ."""
    for key in sorted(new.keys() | old.keys()):
        first, second = new.get(key), old.get(key)
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            yield from differences(first, second, f"{pointer}/{key}")
        elif first != second:
            yield f"{pointer}/{key}"


def filled(document: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    """The document with ``values`` at their JSON pointers, which lead through objects only."""
    result = dict(document)
    for pointer, value in values.items():
        *parents, last = pointer.strip("/").split("/")
        parent = result
        for part in parents:
            parent[part] = dict(parent.get(part) or {})
            parent = parent[part]
        parent[last] = value
    return result
