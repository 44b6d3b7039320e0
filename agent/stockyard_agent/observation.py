"""The observation that the agent posts: the cluster's version, its CA hash, and each node with its number of pods."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from . import VERSION
from .kubernetes import Kubernetes, Object

CLAIM = "stockyard.dev/claim"
"""The node label whose value is the id of the node claim."""
OVERLAY = "stockyard.dev/overlay"
"""The annotation by which a machine of an overlay says how it is reached."""
MOST_OVERLAY = 4_096
"""The longest that is told, in characters."""
LIMIT = 5 * 1024 * 1024
"""The largest post, in bytes before compression."""
_NODES, _PODS = 100, 500
"""Items per page. Nodes are large, because each one lists the names of all its images."""
_RUNNING = {"fieldSelector": "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"}
_LABELS_KEPT = ("stockyard.dev/", "topology.kubernetes.io/", "node.kubernetes.io/", "kubernetes.io/")


class TooLarge(Exception):
    """The post is too large even without the labels that scheduling does not need."""


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds."""
    utc = moment.astimezone(timezone.utc)  # noqa: UP017
    return utc.strftime("%Y-%m-%dT%H:%M:%S.") + f"{utc.microsecond // 1000:03d}Z"


def observe(kube: Kubernetes) -> dict[str, Any]:
    """``kubernetes_version`` and ``nodes`` of the post.

    Raises ``Refused``, ``Unreachable``. It never returns part of the nodes, because missing ones count as gone.
    """
    version = str(kube.call("GET", "/version").get("gitVersion", ""))
    pods: Counter[str] = Counter(kube.collect("/api/v1/pods", _RUNNING, _node_name, _PODS))
    nodes = kube.collect("/api/v1/nodes", {}, _observed_node, _NODES)
    return {"kubernetes_version": version, "nodes": [{**node, "pods": pods[node["name"]]} for node in nodes]}


def encoded(
    observed: Mapping[str, Any],
    results: Sequence[Mapping[str, Any]],
    *,
    sequence: int,
    moment: datetime,
    pin: str,
    pods: Mapping[str, Any] | None = None,
    overlay: str | None = None,
) -> bytes:
    """The body of a post. When it is too large, labels that scheduling does not need are left out.

    ``pods`` is what is known of the reports of pods, ``overlay`` the version of the list of the overlay's machines that
    was written. Raises ``TooLarge``.
    """
    body = {
        "sequence": sequence,
        "observed_at": timestamp(moment),
        "agent_version": VERSION,
        "kubernetes_version": observed["kubernetes_version"],
        "ca_hash": pin,
        "nodes": observed["nodes"],
        "results": list(results),
        "pods": pods,
        "overlay": overlay,
    }
    data = json.dumps(body, separators=(",", ":")).encode()
    if len(data) > LIMIT:
        body["nodes"] = [{**_without_paths(node), "labels": _cut(node["labels"])} for node in observed["nodes"]]
        data = json.dumps(body, separators=(",", ":")).encode()
    if len(data) > LIMIT:
        raise TooLarge(
            f"{len(observed['nodes'])} nodes and {len(results)} results make {len(data)} bytes, over {LIMIT}"
        )
    return data


def _cut(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name.startswith(_LABELS_KEPT)}


def _without_paths(node: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in node.items() if name != "overlay"}


def _node_name(pod: Object) -> str | None:
    return (pod.get("spec") or {}).get("nodeName") or None


def _observed_node(node: Object) -> dict[str, Any]:
    meta, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    labels = meta.get("labels") or {}
    ready: Object = next(
        (condition for condition in status.get("conditions") or () if condition.get("type") == "Ready"), {}
    )
    taints = [{"key": t["key"], "value": t.get("value", ""), "effect": t["effect"]} for t in spec.get("taints") or ()]
    paths = (meta.get("annotations") or {}).get(OVERLAY)
    return {
        **({"overlay": paths} if paths and len(paths) <= MOST_OVERLAY else {}),
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
