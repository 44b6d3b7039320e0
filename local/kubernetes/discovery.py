"""Documents that every authenticated user may read of a simulated Kubernetes API: its version, its groups and their
resources."""

from __future__ import annotations

from collections.abc import Sequence

from local.kubernetes.store import Object, Resource

_ALL_VERBS = {"singularName": "", "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"]}
"""What discovery says of each resource; who may do what is judged at the call."""


def discovery(version: str, resources: Sequence[Resource]) -> dict[str, Object]:
    """The pages by their paths."""
    pages: dict[str, Object] = {"/version": {"gitVersion": version}, **_roots(resources)}
    for resource in resources:
        path = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.api_version}"
        empty = {"kind": "APIResourceList", "groupVersion": resource.api_version, "resources": []}
        entry = {"name": resource.name, "kind": resource.kind, "namespaced": resource.namespaced, **_ALL_VERBS}
        pages.setdefault(path, empty)["resources"].append(entry)
        if resource.name == "pods":
            pages[path]["resources"].append({"name": "pods/eviction", "kind": "Eviction", "namespaced": True})
    return pages


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
