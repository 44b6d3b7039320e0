"""Changes of objects of a simulated Kubernetes API: JSON merge patch, and server-side apply with field owners."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from local.kubernetes.controllers import quotas
from local.kubernetes.resources import Resource
from local.kubernetes.schema import custom
from local.kubernetes.store import Key, KubeStore, Object, StatusError, copied

Path = tuple[str, ...]
_ALWAYS = frozenset({"apiVersion", "kind", "metadata"})
MEMBERS = {
    "configmaps": frozenset({"data", "binaryData", "immutable"}),
    "secrets": frozenset({"data", "stringData", "type", "immutable"}),
    "deployments": frozenset({"spec", "status"}),
    "daemonsets": frozenset({"spec", "status"}),
    "clusterrolebindings": frozenset({"subjects", "roleRef"}),
    "rolebindings": frozenset({"subjects", "roleRef"}),
}
"""Resource -> the members that its schema has beside ``apiVersion``, ``kind`` and ``metadata``."""
_SMALLEST = 2
"""Length of the path of a field whose object stays when it is empty: ``spec``, ``metadata``, ``data``."""
_TEXTS = frozenset({"configmaps", "secrets"})
"""Resources whose data are texts."""
_NEVER_OWNED = frozenset(
    {("apiVersion",), ("kind",), *(("metadata", name) for name in ("name", "namespace", "resourceVersion", "uid"))}
)


def merged(target: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7396) on a copy."""
    if not isinstance(patch, Mapping):
        return copied(patch)
    result = dict(copied(target)) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def put(store: KubeStore, resource: Resource, key: Key, document: Object, subresource: str) -> Object:
    """Replace an object; where the status is a part by itself, that part or all but it. Raises as the store does."""
    old, meta = store.get(key), document.get("metadata", {})
    if custom.is_judged(resource):
        if not meta.get("resourceVersion"):
            text = "Invalid value: 0: must be specified for an update"
            cause = ("FieldValueInvalid", text, "metadata.resourceVersion")
            raise StatusError(422, f"{key} is invalid: {cause[2]}: {text}", causes=(cause,), key=key)
        return custom.replaced(store, resource, key, old, document, subresource)
    if not resource.has_status:
        return store.replace(key, document)
    if subresource == "status":
        guards = {name: meta[name] for name in ("uid", "resourceVersion") if name in meta}
        changed = {**old, "metadata": {**old["metadata"], **guards}, "status": document.get("status", {})}
    else:
        changed = {**document, **({"status": old["status"]} if "status" in old else {})}
    return store.replace(key, changed)


def apply(
    store: KubeStore,
    key: Key,
    manifest: Mapping[str, Any],
    manager: str,
    resource: Resource | None = None,
    part: str = "",
    *,
    force: bool,
) -> Object:
    """Server-side apply: ``manager`` owns the fields that it sent. Fields that it no longer sends are removed.

    Lists are one leaf. A ``resource`` with a schema is judged by it; ``part``: the status where it is applied.
    Raises ``StatusError`` 409 when another manager owns a leaf that differs, unless ``force``, and when the object is
    not of the version that the manifest names; 500 and 422 for what the schema refuses.
    """
    if (name := manifest.get("metadata", {}).get("name", key.name)) != key.name:
        raise StatusError(400, f"the name of the object ({name}) does not match the name on the URL ({key.name})")
    custom.check_apply(resource, key, manifest)
    custom.check_namespace(resource, store, key)
    manifest = custom.part_of(resource, manifest, part)
    if fault := _fault(key, manifest):
        version = str(manifest.get("apiVersion", ""))
        kind = f"{version if '/' in version else f'/{version}'}, Kind={manifest.get('kind')}"
        text = f"failed to create typed patch object ({key.namespace}/{key.name}; {kind}): {fault}"
        raise StatusError(500, text, reason="")
    sent = dict(leaves(manifest))
    expected = {name: manifest.get("metadata", {}).get(name) for name in ("resourceVersion", "uid")}
    is_new = key not in store.objects
    if is_new:
        if uid := expected.pop("uid"):
            text = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise StatusError(409, f"Operation cannot be fulfilled on {key}: {text}", key=key)
        expected = {}  # the version of what is not there is not looked at
    current = {**manifest, "metadata": {**manifest.get("metadata", {})}} if is_new else store.get(key)
    owners = _owners(current)
    other_owners = {path: name for name, paths in owners.items() if name != manager for path in paths}
    conflicts = [
        path for path, value in sent.items() if path in other_owners and value != {} and _at(current, path) != value
    ]
    if conflicts and not force:
        raise _conflict(key, {path: other_owners[path] for path in conflicts})
    changed = copied(current)
    changed["metadata"] |= {name: value for name, value in expected.items() if value}
    for path in owners.get(manager, set()) - sent.keys() - other_owners.keys():
        _drop(changed, path)
    for path, value in sent.items():
        _set_value(changed, path, value)
    owners = {name: paths - set(conflicts) for name, paths in owners.items()} | {manager: set(sent)}
    changed["metadata"]["managedFields"] = _managed(changed, owners)
    if not is_new:
        return custom.replaced(store, resource, key, current, changed, part)
    changed = custom.admitted(store, resource, key, None, changed, part)
    quotas.check(store, key)
    return store.create(key, changed)


def _managed(document: Object, owners: Mapping[str, set[Path]]) -> list[Object]:
    """Entries of the managers of an object's fields."""
    version = document.get("apiVersion", "")
    about = {"operation": "Apply", "apiVersion": version, "fieldsType": "FieldsV1"}
    return [{"manager": name, **about, "fieldsV1": _fields(paths)} for name, paths in sorted(owners.items()) if paths]


def _fault(key: Key, manifest: Mapping[str, Any]) -> str:
    """The first field that the schema does not have, or has as a text; empty for none."""
    unknown = manifest.keys() - MEMBERS.get(key.resource, manifest.keys()) - _ALWAYS
    if unknown:
        return f".{min(unknown)}: field not declared in schema"
    for member in ("data", "stringData"):
        for name, value in (manifest.get(member) or {}).items() if key.resource in _TEXTS else ():
            if not isinstance(value, str):
                return f".{member}.{name}: expected string, got &value.valueUnstructured{{Value:{json.dumps(value)}}}"
    return ""


def _conflict(key: Key, owners: Mapping[Path, str]) -> StatusError:
    """The error of an apply without force, as the API server words it when all owners have applied, too."""
    fields = {path: "." + ".".join(path) for path in owners}
    causes = tuple(("FieldManagerConflict", f'conflict with "{name}"') for name in owners.values())
    if len(owners) == 1:
        ((path, name),) = owners.items()
        text = f'1 conflict: conflict with "{name}": {fields[path]}'
    else:
        listed = "\n".join(
            f'conflicts with "{name}":\n'
            + "\n".join(f"- {fields[path]}" for path, owner in owners.items() if owner == name)
            for name in sorted(set(owners.values()))
        )
        text = f"{len(owners)} conflicts: {listed}"
    return StatusError(409, f"Apply failed with {text}", causes=causes, key=key)


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
    return {entry["manager"]: set(_paths(entry.get("fieldsV1") or {})) for entry in fields}


def _fields(paths: Iterable[Path]) -> Object:
    """Paths as Kubernetes writes owned fields: an object of each name behind ``f:``, empty at the end."""
    fields: Object = {}
    for path in sorted(paths):
        inner = fields
        for name in path:
            inner = inner.setdefault(f"f:{name}", {})
    return fields


def _paths(fields: Mapping[str, Any], path: Path = ()) -> Iterator[Path]:
    for name, inner in fields.items():
        here = (*path, name.removeprefix("f:"))
        if inner:
            yield from _paths(inner, here)
        else:
            yield here


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
        target[path[-1]] = copied(value)


def _drop(target: Object, path: Path) -> None:
    """Take a field away, and the objects around it that have none any more."""
    inner = _at(target, path[:-1])
    if isinstance(inner, dict):
        inner.pop(path[-1], None)
        if not inner and len(path) > _SMALLEST:
            _drop(target, path[:-1])
