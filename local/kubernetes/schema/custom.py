"""Custom resources, judged by the schemas of their definitions as an API server judges them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from local.kubernetes.resources import Resource
from local.kubernetes.schema.structural import misfit, stored, unknown_fields, whole
from local.kubernetes.schema.values import Cause, faults
from local.kubernetes.store import Key, KubeStore, Object, StatusError

_GUARDS = ("resourceVersion", "uid")


def is_judged(resource: Resource | None) -> TypeGuard[Resource]:
    """Whether the kind is one of a definition with a schema. Whatever is of another kind passes all checks here."""
    return resource is not None and resource.schema is not None


def check_apply(resource: Resource | None, key: Key, manifest: Mapping[str, Any]) -> None:
    """Raise ``StatusError`` for a manifest that server-side apply cannot take: 400 for another kind, 500 for a field
    that the schema does not have, or that has another type there."""
    if not is_judged(resource):
        return
    if (manifest.get("apiVersion"), manifest.get("kind")) != (resource.api_version, resource.kind):
        raise StatusError(400, f"invalid object type: {manifest.get('apiVersion')}, Kind={manifest.get('kind')}")
    if fault := misfit(manifest, whole(resource.schema or {})):
        subject = f"{key.namespace}/{key.name}; {resource.api_version}, Kind={resource.kind}"
        raise StatusError(500, f"failed to create typed patch object ({subject}): {fault}", reason="")


def check_fields(resource: Resource | None, document: Mapping[str, Any]) -> None:
    """Raise ``StatusError`` 400 for fields that the schema does not have, where a client is strict about them."""
    if not is_judged(resource):
        return
    unknown = sorted(unknown_fields(document, whole(resource.schema or {})))
    if unknown:
        kind = resource.kind
        text = ", ".join(f'unknown field "{path}"' for path in unknown)
        start = f'{kind} in version "{resource.version}" cannot be handled as a {kind}: strict decoding error'
        raise StatusError(400, f"{start}: {text}")


def check_namespace(resource: Resource | None, store: KubeStore, key: Key) -> None:
    """Raise ``StatusError`` 404 where the object's namespace is not there."""
    if is_judged(resource) and key.namespace and Key("", "namespaces", "", key.namespace) not in store.objects:
        space = Key("", "namespaces", "", key.namespace)
        raise StatusError(404, f'namespaces "{key.namespace}" not found', key=space)


def admitted(
    store: KubeStore, resource: Resource | None, key: Key, before: Object | None, after: Object, part: str = ""
) -> Object:
    """The object as it is stored: of one part of it, without fields that the schema does not have, with defaults.

    ``part``: the status, which is written by itself, or empty for all but it. Raises ``StatusError`` 422 with a cause
    for each field that is refused.
    """
    if not is_judged(resource):
        return after
    desired = _confined(before or {}, after, part) if resource.has_status else after
    schema = whole(resource.schema or {})
    document: Object = stored(desired, schema)
    document["metadata"]["name"] = key.name
    causes = faults(document, schema)
    if causes:
        raise _invalid(resource, key, causes)
    webhook = store.webhooks.get(resource.kind) if not part else None
    if webhook is not None and (refusals := webhook(document)):
        raise _denied(resource, key, refusals)
    return document


def replaced(
    store: KubeStore, resource: Resource | None, key: Key, before: Object, after: Object, part: str = ""
) -> Object:
    """The object after a change. One that is being deleted goes with the last of its finalizers."""
    changed = store.replace(key, admitted(store, resource, key, before, after, part))
    meta = changed["metadata"]
    if is_judged(resource) and meta.get("deletionTimestamp") and not meta.get("finalizers"):
        store.remove(key, {})
    return changed


def part_of(resource: Resource | None, manifest: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    """The part of a manifest that its path is for; the rest is not looked at."""
    if not is_judged(resource) or not resource.has_status:
        return manifest
    if part != "status":
        return {name: value for name, value in manifest.items() if name != "status"}
    about = {name: value for name, value in manifest.items() if name in ("apiVersion", "kind", "status")}
    meta = manifest.get("metadata", {})
    return {**about, "metadata": {name: meta[name] for name in ("name", "namespace", *_GUARDS) if name in meta}}


def _confined(before: Object, after: Object, part: str) -> Object:
    """Object with the changes that a request may make: to the status, or to all but it."""
    if part == "status":
        whole_object = {**before, "metadata": {**before.get("metadata", {})}}
        for name in (*_GUARDS, "managedFields"):
            if name in after.get("metadata", {}):
                whole_object["metadata"][name] = after["metadata"][name]
        return {**whole_object, **({"status": after["status"]} if "status" in after else {})}
    members = {name: value for name, value in after.items() if name != "status"}
    return {**members, **({"status": before["status"]} if "status" in before else {})}


def _denied(resource: Resource, key: Key, refusals: list[tuple[str, str]]) -> StatusError:
    """The refusal of a webhook that validates objects."""
    text = ", ".join(reason for _, reason in refusals)
    return StatusError(
        422,
        f'admission webhook "{resource.kind.lower()}-validator.{resource.group}" denied the request: {text}',
        key=Key(resource.group, resource.kind, key.namespace, key.name),
        causes=tuple(("FieldValueInvalid", reason, field) for field, reason in refusals),
    )


def _invalid(resource: Resource, key: Key, causes: list[Cause]) -> StatusError:
    text = str(causes[0]) if len(causes) == 1 else f"[{', '.join(map(str, causes))}]"
    return StatusError(
        422,
        f'{resource.kind}.{resource.group} "{key.name}" is invalid: {text}',
        key=Key(resource.group, resource.kind, key.namespace, key.name),
        causes=tuple((cause.reason, cause.text, cause.field) for cause in causes),
    )
