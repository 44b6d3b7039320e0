"""Workloads of packs in a simulated cluster, and its API behind its balancer's name."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from local.kubernetes.api import node
from local.kubernetes.controllers.workloads import settle
from local.kubernetes.real.control_plane import PORT, own_address
from local.kubernetes.simulated import SimulatedCluster
from local.kubernetes.store import Key, KubeStore
from stockyard.providers.kubernetes.client import KubernetesApi

TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}


def key(resource: str, name: str = "a") -> Key:
    return Key("", "nodes", "", name) if resource == "nodes" else Key("apps", resource, "default", name)


def status(store: KubeStore, resource: str) -> dict[str, Any]:
    document: dict[str, Any] = store.objects[key(resource)]["status"]
    return document


def test_workloads_are_ready_when_a_node_takes_their_pods() -> None:
    store = KubeStore(lambda: datetime(2026, 11, 25, tzinfo=UTC))
    for kind, resource in (("Deployment", "deployments"), ("DaemonSet", "daemonsets")):
        meta = {"name": "a", "namespace": "default"}
        spec = {"replicas": 2} if kind == "Deployment" else {}
        store.create(key(resource), {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec})
    plane = node("plane")
    plane["spec"]["taints"] = [TAINT]
    store.create(key("nodes", "plane"), plane)
    settle(store, ())
    assert (status(store, "deployments")["replicas"], status(store, "deployments")["readyReplicas"]) == (2, 0)
    assert status(store, "daemonsets")["desiredNumberScheduled"] == 0
    store.create(key("nodes", "worker"), node("worker"))
    settle(store, ())
    assert status(store, "deployments")["readyReplicas"] == 2
    assert (status(store, "daemonsets")["desiredNumberScheduled"], status(store, "daemonsets")["numberReady"]) == (1, 1)
    revision = store.revision
    settle(store, ())
    assert store.revision == revision, "what is as it was is not written"
    settle(store, ("worker",))
    assert status(store, "deployments")["readyReplicas"] == 0


def test_the_api_answers_at_the_name_of_the_balancer(tmp_path: Path) -> None:
    endpoint = f"{own_address()}:{PORT}"
    cluster = SimulatedCluster(endpoint, "v1.35.4", tmp_path, tmp_path / "log")
    authority, token = base64.b64encode(cluster.authority.pem.encode()).decode(), cluster.api.administrator()
    cluster.start()
    api = KubernetesApi(f"https://{endpoint}", authority, lambda: token)
    try:
        assert cluster.url == f"https://{endpoint}"
        assert api.get("v1", "Namespace", "kube-system") is not None
        assert api.get("rbac.authorization.k8s.io/v1", "ClusterRole", "cluster-admin") is not None
    finally:
        api.close()
        cluster.stop()
