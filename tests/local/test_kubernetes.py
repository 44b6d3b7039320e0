"""Simulated clusters: who may join, what becomes of nodes whose machine is off, and Deployments as real processes."""

from __future__ import annotations

import json
import os
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent import manifest
from agent.roles import NAME, NAMESPACE
from agent.stockyard_agent.authority import pin
from local import kube_pods
from local.kube_store import Key, Object
from local.kubernetes import CONTROL_PLANE, Cluster, Clusters, Kubelet, NotJoined
from tests.unit.agent.rig import CLUSTER, SECRET, HttpPlatform, Platform

ENDPOINT = "nlb.example.test:6443"
TOKEN = "abcdef.0123456789abcdef"
KUBELET = Kubelet("aws:///us-east-1a/i-1", 2, 8192)


def until(look: Callable[[], Any], seconds: float = 60) -> Any:
    end, pause = time.monotonic() + seconds, threading.Event()
    while not (found := look()):
        assert time.monotonic() < end, "it did not come about in time"
        pause.wait(0.05)
    return found


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[Clusters]:
    found = Clusters(tmp_path / "agents.log")
    yield found
    found.close()


@pytest.fixture
def cluster(clusters: Clusters, tmp_path: Path) -> Cluster:
    made = clusters.make(ENDPOINT, "1.34", tmp_path / "cluster")
    expires = (datetime.now(UTC) + timedelta(minutes=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
    token = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": "abcdef",
            "token-secret": "0123456789abcdef",
            "expiration": expires,
            "usage-bootstrap-authentication": "true",
            "usage-bootstrap-signing": "true",
            "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
        },
    }
    made.api.install([token])
    return made


def configuration(cluster: Cluster, **changes: Any) -> dict[str, Any]:
    discovery = {"token": TOKEN, "apiServerEndpoint": ENDPOINT, "caCertHashes": [cluster.authority.pin], **changes}
    flags = [{"name": "node-labels", "value": "stockyard.dev/claim=ncl_1,team=blue"}]
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    return {
        "discovery": {"bootstrapToken": discovery},
        "nodeRegistration": {"name": "worker", "taints": [taint], "kubeletExtraArgs": flags},
    }


def node_of(cluster: Cluster, name: str = "worker") -> Object:
    return cluster.api.store.get(Key("", "nodes", "", name))


def ready(cluster: Cluster, name: str = "worker") -> str:
    (condition,) = node_of(cluster, name)["status"]["conditions"]
    return str(condition["status"])


def test_a_machine_joins_as_its_configuration_says(cluster: Cluster) -> None:
    assert cluster.join(configuration(cluster), KUBELET) == "worker"
    made = node_of(cluster)
    assert made["spec"]["providerID"] == "aws:///us-east-1a/i-1"
    assert made["spec"]["taints"] == [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    labels = made["metadata"]["labels"]
    assert (labels["stockyard.dev/claim"], labels["team"]) == ("ncl_1", "blue")
    assert (labels["kubernetes.io/hostname"], labels["kubernetes.io/arch"]) == ("worker", "amd64")
    assert made["status"]["allocatable"] == {"cpu": "2", "memory": "8192Mi", "pods": "110"}
    assert ready(cluster) == "True"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"caCertHashes": ["sha256:" + "0" * 64]}, "none of the hashes"),
        ({"token": "abcdef.fedcba9876543210"}, "401"),
        ({"token": "zzzzzz.0123456789abcdef"}, "401"),
    ],
)
def test_nobody_joins_without_the_right_token_and_authority(cluster: Cluster, changes: Any, why: str) -> None:
    with pytest.raises(NotJoined, match=why):
        cluster.join(configuration(cluster, **changes), KUBELET)
    assert [key for key in cluster.api.store.objects if key.resource == "nodes"] == []


def test_a_cluster_is_found_by_its_endpoint_while_it_is_there(clusters: Clusters, cluster: Cluster) -> None:
    assert clusters.at(ENDPOINT) is cluster
    with pytest.raises(NotJoined, match=r"nothing answers at other\.test:6443"):
        clusters.at("other.test:6443")
    clusters.remove(cluster)
    with pytest.raises(NotJoined):
        clusters.at(ENDPOINT)


def test_a_silent_node_stays_and_its_pods_do_not_end(cluster: Cluster) -> None:
    cluster.join(configuration(cluster), KUBELET)
    cluster.start()
    cluster.api.install([{**kube_pods.pod("web", "worker"), "apiVersion": "v1", "kind": "Pod"}])
    key = Key("", "pods", "default", "web")
    cluster.power("worker", on=False)
    assert ready(cluster) == "Unknown"
    kube_pods.delete(cluster.api.store, key, {})
    cluster.work()
    assert key in cluster.api.store.objects
    cluster.power("worker", on=True)
    cluster.work()
    assert ready(cluster) == "True"
    assert key not in cluster.api.store.objects


def test_a_node_that_was_deleted_does_not_come_back(cluster: Cluster) -> None:
    cluster.join(configuration(cluster), KUBELET)
    cluster.api.store.remove(Key("", "nodes", "", "worker"), {})
    cluster.power("worker", on=False)
    cluster.power("worker", on=True)
    assert Key("", "nodes", "", "worker") not in cluster.api.store.objects


def test_the_control_planes_own_node_is_ready_and_takes_no_ordinary_pods(cluster: Cluster) -> None:
    cluster.register("ip-10-0-0-5", KUBELET)
    made = node_of(cluster, "ip-10-0-0-5")
    assert CONTROL_PLANE in made["metadata"]["labels"]
    assert made["spec"]["taints"] == [{"key": CONTROL_PLANE, "effect": "NoSchedule"}]
    assert ready(cluster, "ip-10-0-0-5") == "True"


# --- the agent, as it is applied -------------------------------------------------------------------------------------


@pytest.fixture
def heard() -> Platform:
    return Platform(interval=0)


@pytest.fixture
def platform(heard: Platform) -> Iterator[HttpPlatform]:
    found = HttpPlatform(heard)
    yield found
    found.close()


def applied(cluster: Cluster, url: str) -> None:
    documents = manifest.documents(manifest.Settings(url, CLUSTER, f"{url}/realms/s/token"))
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": manifest.SECRET, "namespace": NAMESPACE},
        "data": {
            name: b64encode(text.encode()).decode()
            for name, text in {"client_id": "the-client", "client_secret": SECRET}.items()
        },
    }
    cluster.api.install([documents[0], secret, *documents[1:]])


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_agent_runs_from_what_was_applied_and_ends_with_its_cluster(
    clusters: Clusters, cluster: Cluster, platform: HttpPlatform, heard: Platform, tmp_path: Path
) -> None:
    clusters.start()
    cluster.register("ip-10-0-0-5", KUBELET)
    cluster.start()
    assert clusters.processes == []
    applied(cluster, platform.url)
    (first,) = until(lambda: clusters.processes)
    post = until(lambda: heard.posts)[0]
    assert [one["name"] for one in post["nodes"]] == ["ip-10-0-0-5"]
    assert post["ca_hash"] == cluster.authority.pin == pin(cluster.authority.pem)
    assert post["kubernetes_version"] == "v1.34.0"
    os.kill(first, 9)
    (second,) = until(lambda: [one for one in clusters.processes if one != first])
    cluster.stop()
    assert gone(second)
    cluster.start()
    (third,) = until(lambda: clusters.processes)
    seen = len(heard.posts)
    until(lambda: len(heard.posts) > seen)
    clusters.remove(cluster)
    assert gone(third)
    assert clusters.processes == []
    assert SECRET not in (tmp_path / "agents.log").read_text()


def test_a_changed_deployment_is_started_anew(clusters: Clusters, cluster: Cluster, platform: HttpPlatform) -> None:
    clusters.start()
    cluster.start()
    applied(cluster, platform.url)
    (first,) = until(lambda: clusters.processes)
    key = Key("apps", "deployments", NAMESPACE, NAME)
    with cluster.api.held() as store:
        changed = json.loads(json.dumps(store.get(key)))
        changed["spec"]["template"]["metadata"]["annotations"] = {"stockyard.dev/code": "other"}
        store.replace(key, changed)
    until(lambda: clusters.processes and first not in clusters.processes)
    assert gone(first)
    with cluster.api.held() as store:
        store.remove(key, {})
    until(lambda: not clusters.processes)


def test_without_its_secret_a_pod_waits(clusters: Clusters, cluster: Cluster, platform: HttpPlatform) -> None:
    cluster.start()
    applied(cluster, platform.url)
    secret = Key("", "secrets", NAMESPACE, manifest.SECRET)
    with cluster.api.held() as store:
        kept = store.get(secret)
        store.remove(secret, {})
    cluster.work()
    assert clusters.processes == []
    cluster.api.install([{name: kept[name] for name in ("apiVersion", "kind", "data")} | {"metadata": {
        "name": manifest.SECRET, "namespace": NAMESPACE}}])  # fmt: skip
    cluster.work()
    assert len(clusters.processes) == 1
