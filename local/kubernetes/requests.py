"""Requests of a simulated Kubernetes API, as their method, path, headers and body say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import yaml

from local.kubernetes.resources import RESOURCES, Resource
from local.kubernetes.rules import Action
from local.kubernetes.schema import protobuf
from local.kubernetes.store import Key, StatusError

PROTOBUF = "application/vnd.kubernetes.protobuf"
"""Format of some bodies of typed clients such as kubectl's. They do not fall back to JSON."""
NOWHERE = "the server could not find the requested resource"
JSON_PATCH = "application/json-patch+json"
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NO_METHOD = "the server does not allow this method on the requested resource"


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``body`` is an object, but for a JSON patch, which is a list."""

    resource: Resource | None
    """None when the API has no such resource, or none with this method: who may ask is judged first."""
    action: Action
    key: Key
    query: Mapping[str, str]
    content_type: str
    body: Any
    subresource: str = ""
    refusal: StatusError | None = None
    as_table: bool = False
    """Whether the client asks for the columns that the server prints."""


def key_of(document: Mapping[str, Any], namespace: str = "", served: Sequence[Resource] = RESOURCES) -> Key:
    """The key of an object. Raises ``StatusError`` 404 for a kind that is not served."""
    for resource in served:
        if (resource.api_version, resource.kind) == (document.get("apiVersion"), document.get("kind")):
            meta = document["metadata"]
            scope = (meta.get("namespace") or namespace or "default") if resource.namespaced else ""
            return Key(resource.group, resource.name, scope, meta["name"])
    raise StatusError(404, NOWHERE)


def parse(served: Sequence[Resource], method: str, target: str, headers: Mapping[str, str], body: bytes) -> Request:
    """The request. Raises ``StatusError``: 404 outside of the API, 400 and 415 for a body that cannot be read."""
    parts = urlsplit(target)
    names = [unquote(name) for name in parts.path.strip("/").split("/")]
    if len(names) < (3 if names[0] == "api" else 4) or names[0] not in ("api", "apis"):
        raise StatusError(404, "404 page not found", plain=True)
    group, version, names_left = ("", names[1], names[2:]) if names[0] == "api" else (names[1], names[2], names[3:])
    namespace = ""
    if len(names_left) > 2 and names_left[0] == "namespaces" and names_left[2] != "status":
        namespace, names_left = names_left[1], names_left[2:]
    resource = next((r for r in served if (r.group, r.version, r.name) == (group, version, names_left[0])), None)
    name, subresource = (*names_left[1:], "", "")[:2]
    verb = _VERBS.get(method) or ("get" if name else "list")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    verb = "deletecollection" if verb == "delete" and not name else verb
    verb = "watch" if verb == "list" and query.get("watch") in ("true", "1") else verb
    refusal = None if resource else StatusError(404, NOWHERE)
    if resource and not _has(resource, verb, name, subresource):
        resource, refusal = None, StatusError(405, _NO_METHOD)
    return Request(
        resource,
        Action(verb, group, names_left[0] + (f"/{subresource}" if subresource else ""), namespace, name),
        Key(group, names_left[0], namespace, name),
        query,
        headers.get("content-type", ""),
        _body(body, headers.get("content-type", "")),
        subresource,
        refusal,
        "as=Table" in headers.get("accept", ""),
    )


def _has(resource: Resource, verb: str, name: str, subresource: str) -> bool:
    """Whether a resource has such a method."""
    if resource.verbs and verb not in resource.verbs:
        return False
    if verb in ("update", "patch", "deletecollection") and not name:
        return False
    return subresource in ("", *resource.parts, "status" if resource.has_status else "")


def _body(body: bytes, content_type: str) -> Any:
    kind = content_type.partition(";")[0]
    try:
        if kind == PROTOBUF:
            read: Any = protobuf.read(body) if body else {}
        elif kind.endswith("yaml") and not body.lstrip().startswith(b"{"):
            read = yaml.safe_load(body) or {}
        elif kind.endswith("cbor"):
            raise protobuf.Unreadable("the simulated API reads JSON, YAML and protobuf")
        else:
            read = json.loads(body or b"{}")
    except protobuf.Unreadable as error:
        raise StatusError(415, str(error)) from None
    except (ValueError, yaml.YAMLError) as error:
        raise StatusError(400, f"the body of the request cannot be read: {str(error).splitlines()[0]}") from None
    if not isinstance(read, list if kind == JSON_PATCH else dict):
        raise StatusError(400, f"the body of the request is no {'list' if kind == JSON_PATCH else 'object'}")
    return read
