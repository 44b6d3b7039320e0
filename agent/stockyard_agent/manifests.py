"""Server-side apply of manifests, within the rights that the agent's roles give."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from .kubernetes import APPLY, Kubernetes, Refused
from .work import DONE, Result, Unfit, Work

MANAGER = "stockyard-agent"
_VERSION = re.compile(r"([a-z0-9][a-z0-9.-]*/)?v[0-9][a-z0-9]*")


def apply(work: Work) -> Result:
    """Apply one after the other. Those before one that is refused stay applied; applying them again changes nothing."""
    manifests = work.objects("manifests")
    for position, manifest in enumerate(manifests):
        _check(manifest, position)
    plurals: dict[str, list[Mapping[str, Any]]] = {}
    for position, manifest in enumerate(manifests):
        version = manifest["apiVersion"]
        if version not in plurals:
            plurals[version] = _resources(work.kube, version, position)
        path = _path(manifest, plurals[version], position)
        query = {"fieldManager": MANAGER, "force": "true"}
        work.kube.call("PATCH", path, manifest, query=query, content_type=APPLY)
    return Result(DONE, f"{len(manifests)} manifests are applied.", {"applied": len(manifests)})


def _check(manifest: Mapping[str, Any], position: int) -> None:
    if not isinstance(version := manifest.get("apiVersion"), str) or not _VERSION.fullmatch(version):
        raise Unfit(f"/manifests/{position}/apiVersion: text as v1 or apps/v1 is needed")
    if not isinstance(manifest.get("kind"), str):
        raise Unfit(f"/manifests/{position}/kind: text is needed")
    meta = manifest.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str) or not meta["name"]:
        raise Unfit(f"/manifests/{position}/metadata/name: text is needed")
    if not isinstance(meta.get("namespace", ""), str):
        raise Unfit(f"/manifests/{position}/metadata/namespace: text is needed")


def _root(version: str) -> str:
    return ("/apis/" if "/" in version else "/api/") + quote(version)


def _resources(kube: Kubernetes, version: str, position: int) -> list[Mapping[str, Any]]:
    try:
        return [one for one in kube.call("GET", _root(version)).get("resources") or () if "/" not in one["name"]]
    except Refused as refused:
        if refused.status != 404:
            raise
        raise Unfit(f"/manifests/{position}/apiVersion: the cluster does not know {version}") from None


def _path(manifest: Mapping[str, Any], resources: list[Mapping[str, Any]], position: int) -> str:
    kind, meta = manifest["kind"], manifest["metadata"]
    found = next((one for one in resources if one["kind"] == kind), None)
    if found is None:
        raise Unfit(f"/manifests/{position}/kind: {manifest['apiVersion']} has no {kind}")
    where = ""
    if found["namespaced"]:
        if not meta.get("namespace"):
            raise Unfit(f"/manifests/{position}/metadata/namespace: a {kind} needs one")
        where = f"/namespaces/{quote(meta['namespace'], safe='')}"
    return f"{_root(manifest['apiVersion'])}{where}/{found['name']}/{quote(meta['name'], safe='')}"
