"""What the agent sees: the cluster's version, its authority's hash, and each node with the number of its pods."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from . import VERSION
from .kubernetes import Kubernetes, Object

CLAIM = "stockyard.dev/claim"
"""The label of a node that says which claim it is."""
LIMIT = 5 * 1024 * 1024
"""Bytes of a post before compression."""
_NODES, _PODS = 100, 500
"""Items a page: a node carries the names of all its images, and is large."""
_RUNNING = {"fieldSelector": "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"}
_KEPT = ("stockyard.dev/", "topology.kubernetes.io/", "node.kubernetes.io/", "kubernetes.io/")


class TooLarge(Exception):
    """What is to be posted does not fit, even when it is cut to what matters."""


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds."""
    utc = moment.astimezone(timezone.utc)  # noqa: UP017
    return utc.strftime("%Y-%m-%dT%H:%M:%S.") + f"{utc.microsecond // 1000:03d}Z"


def observe(kube: Kubernetes) -> dict[str, Any]:
    """``kubernetes_version`` and ``nodes`` as the post has them.

    Raises ``Refused``, ``Unreachable``: an incomplete list would say that nodes are gone, so there is none.
    """
    version = str(kube.call("GET", "/version").get("gitVersion", ""))
    pods: Counter[str] = Counter(kube.collect("/api/v1/pods", _RUNNING, _node_name, _PODS))
    nodes = kube.collect("/api/v1/nodes", {}, _seen, _NODES)
    return {"kubernetes_version": version, "nodes": [{**one, "pods": pods[one["name"]]} for one in nodes]}


def encoded(
    observed: Mapping[str, Any], results: Sequence[Mapping[str, Any]], *, sequence: int, moment: datetime, pin: str
) -> bytes:
    """The body of a post. Too large, it loses the labels that nobody places by. Raises ``TooLarge``."""
    body = {
        "sequence": sequence,
        "observed_at": timestamp(moment),
        "agent_version": VERSION,
        "kubernetes_version": observed["kubernetes_version"],
        "ca_hash": pin,
        "nodes": observed["nodes"],
        "results": list(results),
    }
    data = json.dumps(body, separators=(",", ":")).encode()
    if len(data) > LIMIT:
        body["nodes"] = [{**node, "labels": _cut(node["labels"])} for node in observed["nodes"]]
        data = json.dumps(body, separators=(",", ":")).encode()
    if len(data) > LIMIT:
        raise TooLarge(
            f"{len(observed['nodes'])} nodes and {len(results)} results make {len(data)} bytes, over {LIMIT}"
        )
    return data


def _cut(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name.startswith(_KEPT)}


def _node_name(pod: Object) -> str | None:
    return (pod.get("spec") or {}).get("nodeName") or None


def _seen(node: Object) -> dict[str, Any]:
    meta, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    labels = meta.get("labels") or {}
    ready: Object = next((one for one in status.get("conditions") or () if one.get("type") == "Ready"), {})
    taints = [{"key": t["key"], "value": t.get("value", ""), "effect": t["effect"]} for t in spec.get("taints") or ()]
    return {
        "name": meta["name"],
        "uid": meta["uid"],
        "provider_id": spec.get("providerID", ""),
        "created_at": meta["creationTimestamp"],
        "claim": labels.get(CLAIM),
        "ready": ready.get("status", "Unknown"),
        "unschedulable": bool(spec.get("unschedulable")),
        "taints": taints,
        "labels": labels,
        "capacity": status.get("capacity") or {},
        "allocatable": status.get("allocatable") or {},
    }
