"""Changes of objects of a simulated Kubernetes API: JSON merge patch, and server-side apply with field owners."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from local.kube_store import Denied, Key, KubeStore, Object

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


def apply(store: KubeStore, key: Key, wanted: Mapping[str, Any], manager: str, *, force: bool) -> Object:
    """Server-side apply: ``manager`` then owns the leaves it sent; leaves it sent earlier and not now are removed.

    Lists are one leaf. Raises ``Denied`` 409 when another manager owns a leaf that differs, unless ``force``.
    """
    if wanted.get("metadata", {}).get("name", key.name) != key.name:
        raise Denied(400, "the name of the object does not match the name on the URL")
    sent = dict(leaves(wanted))
    if key not in store.objects:
        store.create(key, {**wanted, "metadata": {**wanted.get("metadata", {}), "managedFields": []}})
    found = store.get(key)
    owners = _owners(found)
    theirs = {path: name for name, paths in owners.items() if name != manager for path in paths}
    taken = [path for path, value in sent.items() if path in theirs and value != {} and _at(found, path) != value]
    if taken and not force:
        fields = ", ".join(".".join(path) for path in taken)
        raise Denied(409, f'Apply failed with conflict with "{theirs[taken[0]]}": {fields}')
    changed = copy.deepcopy(found)
    for path in owners.get(manager, set()) - sent.keys() - theirs.keys():
        _drop(changed, path)
    for path, value in sent.items():
        _put(changed, path, value)
    owners = {name: paths - set(taken) for name, paths in owners.items()} | {manager: set(sent)}
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


def _owners(found: Object) -> dict[str, set[Path]]:
    fields = found["metadata"].get("managedFields") or ()
    return {one["manager"]: {tuple(path) for path in one["paths"]} for one in fields}


def _at(found: Any, path: Path) -> Any:
    for name in path:
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = found[name]
    return found


def _put(target: Object, path: Path, value: Any) -> None:
    for name in path[:-1]:
        target = target.setdefault(name, {})
    if value != {} or not isinstance(target.get(path[-1]), dict):  # an empty object takes nothing away
        target[path[-1]] = copy.deepcopy(value)


def _drop(target: Object, path: Path) -> None:
    inner = _at(target, path[:-1])
    if isinstance(inner, dict):
        inner.pop(path[-1], None)
