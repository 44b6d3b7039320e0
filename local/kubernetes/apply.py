"""Changes of objects of a simulated Kubernetes API: JSON merge patch, and server-side apply with field owners."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from local.kubernetes.store import Key, KubeStore, Object, StatusError

Path = tuple[str, ...]
_NEVER_OWNED = frozenset({("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")})


def merged(target: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7396) on a copy."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    result = dict(copy.deepcopy(target)) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def apply(store: KubeStore, key: Key, manifest: Mapping[str, Any], manager: str, *, force: bool) -> Object:
    """Server-side apply: ``manager`` owns the fields that it sent. Fields that it no longer sends are removed.

    Lists are one leaf. Raises ``StatusError`` 409 when another manager owns a leaf that differs, unless ``force``.
    """
    if manifest.get("metadata", {}).get("name", key.name) != key.name:
        raise StatusError(400, "the name of the object does not match the name on the URL")
    sent = dict(leaves(manifest))
    if key not in store.objects:
        store.create(key, {**manifest, "metadata": {**manifest.get("metadata", {}), "managedFields": []}})
    current = store.get(key)
    owners = _owners(current)
    other_owners = {path: name for name, paths in owners.items() if name != manager for path in paths}
    conflicts = [
        path for path, value in sent.items() if path in other_owners and value != {} and _at(current, path) != value
    ]
    if conflicts and not force:
        fields = ", ".join(".".join(path) for path in conflicts)
        raise StatusError(409, f'Apply failed with conflict with "{other_owners[conflicts[0]]}": {fields}')
    changed = copy.deepcopy(current)
    for path in owners.get(manager, set()) - sent.keys() - other_owners.keys():
        _drop(changed, path)
    for path, value in sent.items():
        _set_value(changed, path, value)
    owners = {name: paths - set(conflicts) for name, paths in owners.items()} | {manager: set(sent)}
    changed["metadata"]["managedFields"] = [
        {"manager": name, "paths": sorted(map(list, paths))} for name, paths in sorted(owners.items()) if paths
    ]
    return store.replace(key, changed)


def leaves(value: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every leaf with its path; an empty object is a leaf."""
    for name, inner in value.items():
        here = (*path, name)
        if here in _NEVER_OWNED:
            continue
        if isinstance(inner, Mapping) and inner:
            yield from leaves(inner, here)
        else:
            yield here, inner


def _owners(current: Object) -> dict[str, set[Path]]:
    fields = current["metadata"].get("managedFields") or ()
    return {entry["manager"]: {tuple(path) for path in entry["paths"]} for entry in fields}


def _at(value: Any, path: Path) -> Any:
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value


def _set_value(target: Object, path: Path, value: Any) -> None:
    for name in path[:-1]:
        target = target.setdefault(name, {})
    if value != {} or not isinstance(target.get(path[-1]), dict):  # an empty object takes nothing away
        target[path[-1]] = copy.deepcopy(value)


def _drop(target: Object, path: Path) -> None:
    inner = _at(target, path[:-1])
    if isinstance(inner, dict):
        inner.pop(path[-1], None)
