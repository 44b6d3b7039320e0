"""Reports of controllers about Deployments and DaemonSets in a simulated cluster, where images are not run.

Their pods are not made. A Deployment has all its pods ready when a node takes pods that tolerate nothing; a DaemonSet
wants one on each such node, and has it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from local.kubernetes.scheduler import takes_pods
from local.kubernetes.store import KubeStore, Object


def settle(store: KubeStore, down: Collection[str]) -> None:
    """Write the status of each. Nodes in ``down`` take no pods."""
    nodes = [document for key, document in store.objects.items() if key.resource == "nodes" and key.name not in down]
    count = sum(map(takes_pods, nodes))
    for key, document in list(store.objects.items()):
        if key.group == "apps" and key.resource in ("deployments", "daemonsets"):
            status = _of_deployment(document, count) if key.resource == "deployments" else _of_daemon_set(count)
            if document.get("status") != status:
                store.replace(key, {**document, "status": status})


def _of_deployment(document: Object, nodes: int) -> dict[str, Any]:
    replicas = int(document["spec"].get("replicas", 1))
    ready = replicas if nodes else 0
    return {"replicas": replicas, "updatedReplicas": replicas, "readyReplicas": ready, "availableReplicas": ready}


def _of_daemon_set(nodes: int) -> dict[str, Any]:
    return {"desiredNumberScheduled": nodes, "updatedNumberScheduled": nodes, "numberReady": nodes}
