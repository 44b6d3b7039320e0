"""Server-side apply of manifests, limited by the agent's roles."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ..kubernetes import APPLY, Kubernetes, Refused
from .commands import DONE, CommandContext, InvalidCommand, Result

MANAGER = "stockyard-agent"
_VERSION = re.compile(r"([a-z0-9][a-z0-9.-]*/)?v[0-9][a-z0-9]*")


def apply(context: CommandContext) -> Result:
    """Apply the manifests in order. When one is refused, the ones before it stay applied; a retry changes nothing."""
    manifests = context.objects("manifests")
    for position, manifest in enumerate(manifests):
        _check(manifest, position)
    plurals: dict[str, list[Mapping[str, Any]]] = {}
    for position, manifest in enumerate(manifests):
        version = manifest["apiVersion"]
        if version not in plurals:
            plurals[version] = _resources(context.kube, version, position)
        path = _path(manifest, plurals[version], position)
        query = {"fieldManager": MANAGER, "force": "true"}
        context.kube.call("PATCH", path, manifest, query=query, content_type=APPLY)
    return Result(DONE, f"{len(manifests)} manifests are applied.", {"applied": len(manifests)})


def _check(manifest: Mapping[str, Any], position: int) -> None:
    if not isinstance(version := manifest.get("apiVersion"), str) or not _VERSION.fullmatch(version):
        raise InvalidCommand(f"/manifests/{position}/apiVersion: text as v1 or apps/v1 is needed")
    if not isinstance(manifest.get("kind"), str):
        raise InvalidCommand(f"/manifests/{position}/kind: text is needed")
    meta = manifest.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str) or not meta["name"]:
        raise InvalidCommand(f"/manifests/{position}/metadata/name: text is needed")
    if not isinstance(meta.get("namespace", ""), str):
        raise InvalidCommand(f"/manifests/{position}/metadata/namespace: text is needed")


def _root(version: str) -> str:
    return ("/apis/" if "/" in version else "/api/") + quote(version)


def _resources(kube: Kubernetes, version: str, position: int) -> list[Mapping[str, Any]]:
    try:
        return [
            resource
            for resource in kube.call("GET", _root(version)).get("resources") or ()
            if "/" not in resource["name"]
        ]
    except Refused as refused:
        if refused.status != 404:
            raise
        raise InvalidCommand(f"/manifests/{position}/apiVersion: the cluster does not know {version}") from None


def _path(manifest: Mapping[str, Any], resources: list[Mapping[str, Any]], position: int) -> str:
    kind, meta = manifest["kind"], manifest["metadata"]
    resource = next((resource for resource in resources if resource["kind"] == kind), None)
    if resource is None:
        raise InvalidCommand(f"/manifests/{position}/kind: {manifest['apiVersion']} has no {kind}")
    scope = ""
    if resource["namespaced"]:
        if not meta.get("namespace"):
            raise InvalidCommand(f"/manifests/{position}/metadata/namespace: a {kind} needs one")
        scope = f"/namespaces/{quote(meta['namespace'], safe='')}"
    return f"{_root(manifest['apiVersion'])}{scope}/{resource['name']}/{quote(meta['name'], safe='')}"
