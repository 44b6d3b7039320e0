"""Documents that every authenticated user may read of a simulated Kubernetes API: its version, its health, its groups
and their resources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from local.kubernetes.resources import Resource
from local.kubernetes.store import Object

HEALTH = ("/healthz", "/livez", "/readyz")
_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
"""Verbs that discovery says of each resource; rights are judged at the call."""


def discovery(version: str, resources: Sequence[Resource]) -> dict[str, Any]:
    """The pages by their paths."""
    major, minor = version.removeprefix("v").split(".")[:2]
    about = {"major": major, "minor": minor, "gitVersion": version, "platform": "linux/amd64"}
    pages: dict[str, Any] = {"/version": about, **dict.fromkeys(HEALTH, "ok"), **_roots(resources)}
    for resource in resources:
        path = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.api_version}"
        empty = {"kind": "APIResourceList", "groupVersion": resource.api_version, "resources": []}
        listed = pages.setdefault(path, empty)["resources"]
        listed.append(_entry(resource))
        listed += [_part(resource, part) for part in resource.parts]
    return pages


def _entry(resource: Resource) -> Object:
    return {
        "name": resource.name,
        "singularName": resource.kind.lower(),
        "kind": resource.kind,
        "namespaced": resource.namespaced,
        "verbs": list(resource.verbs or _VERBS),
        **({"shortNames": list(resource.short_names)} if resource.short_names else {}),
        **({"categories": ["all"]} if resource.is_of_all else {}),
    }


def _part(resource: Resource, part: str) -> Object:
    kind = {"eviction": "Eviction", "scale": "Scale", "token": "TokenRequest"}.get(part, resource.kind)
    group = {"eviction": "policy", "scale": "autoscaling", "token": "authentication.k8s.io"}.get(part)
    of_other = {"group": group, "version": "v1"} if group else {}
    verbs = ["create"] if part in ("eviction", "token") else ["get", "patch", "update"]
    name = f"{resource.name}/{part}"
    return {
        "name": name,
        "singularName": "",
        "kind": kind,
        "namespaced": resource.namespaced,
        "verbs": verbs,
        **of_other,
    }


def _roots(resources: Sequence[Resource]) -> dict[str, Object]:
    """Documents with which a client such as kubectl begins: the versions, and the groups."""
    groups: dict[str, list[Object]] = {}
    for resource in resources:
        version = {"groupVersion": resource.api_version, "version": resource.version}
        if resource.group and version not in groups.setdefault(resource.group, []):
            groups[resource.group].append(version)
    listed = [
        {"name": name, "versions": versions, "preferredVersion": versions[0]} for name, versions in groups.items()
    ]
    return {
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed},
    }
