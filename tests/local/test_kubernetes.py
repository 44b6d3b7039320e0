"""Simulated clusters: who may join, nodes whose machine is off, and Deployments as real processes."""

from __future__ import annotations

import json
import os
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent import manifest, roles
from agent.roles import NAME, NAMESPACE
from agent.stockyard_agent.authority import pin
from agent.stockyard_agent.certificates import Approvals
from agent.stockyard_agent.commands import tokens
from agent.stockyard_agent.kubernetes import Kubernetes
from agent.stockyard_agent.transport import HttpRequest, HttpResponse
from local.kubernetes import pods as kube_pods
from local.kubernetes.api import KubeApi
from local.kubernetes.cluster import CONTROL_PLANE, JoinFailed, Kubelet
from local.kubernetes.clusters import Clusters
from local.kubernetes.people import Person, impersonated
from local.kubernetes.requests import PROTOBUF
from local.kubernetes.simulated import SimulatedCluster
from local.kubernetes.store import Key, Object, StatusError
from stockyard.kubernetes_versions import TESTED
from tests.unit.agent.http_platform import HttpPlatform
from tests.unit.agent.rig import CLUSTER, SECRET, Platform

ENDPOINT = "nlb.example.test:6443"
TOKEN = "abcdef.0123456789abcdef"
KUBELET = Kubelet("aws:///us-east-1a/i-1", 2, 8192)


def until(look: Callable[[], Any], seconds: float = 60) -> Any:
    end, pause = time.monotonic() + seconds, threading.Event()
    while not (value := look()):
        assert time.monotonic() < end, "it did not come about in time"
        pause.wait(0.05)
    return value


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[Clusters]:
    started_clusters = Clusters(tmp_path / "agents.log")
    yield started_clusters
    started_clusters.close()


@pytest.fixture
def cluster(clusters: Clusters, tmp_path: Path) -> SimulatedCluster:
    (tmp_path / "kubeadm.yaml").write_text(
        f"kind: ClusterConfiguration\ncontrolPlaneEndpoint: {ENDPOINT}\nkubernetesVersion: v1.34.0\n"
    )
    cluster = clusters.initialized(tmp_path, "ip-10-0-0-5")
    assert isinstance(cluster, SimulatedCluster)
    expires = (datetime.now(UTC) + timedelta(minutes=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
    identity, secret = TOKEN.split(".")
    token = tokens.secret_of(identity, secret, "ncl_1", "worker", expires)
    cluster.api.install([*roles.documents(), token])
    return cluster


@pytest.fixture
def approving(cluster: SimulatedCluster) -> Iterator[None]:
    """The agent's own approvals, without the agent's process."""
    account, over = cluster.api.issue(NAMESPACE, NAME), threading.Event()

    def exchange(request: HttpRequest) -> HttpResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        target = request.url.removeprefix("https://kube.test")
        status, answer = cluster.api.request(request.method, target, headers, request.body or b"")
        return HttpResponse(status, {}, json.dumps(answer).encode())

    kube = Kubernetes("https://kube.test", exchange, lambda: account)
    approvals = Approvals(kube, lambda: datetime.now(UTC), lambda _: None)

    def look() -> None:
        while not over.wait(0.01):
            approvals.look()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    yield
    over.set()
    thread.join(5)


def configuration(cluster: SimulatedCluster, **changes: Any) -> dict[str, Any]:
    discovery = {"token": TOKEN, "apiServerEndpoint": ENDPOINT, "caCertHashes": [cluster.authority.pin], **changes}
    values = {
        "node-labels": "stockyard.dev/claim=ncl_1,team=blue",
        "kube-reserved": "cpu=70m,memory=300Mi",
        "eviction-hard": "memory.available<100Mi,nodefs.available<10%",
    }
    flags = [{"name": name, "value": value} for name, value in values.items()]
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    return {
        "discovery": {"bootstrapToken": discovery},
        "nodeRegistration": {"name": "worker", "taints": [taint], "kubeletExtraArgs": flags},
    }


def node_of(cluster: SimulatedCluster, name: str = "worker") -> Object:
    return cluster.api.store.get(Key("", "nodes", "", name))


def ready(cluster: SimulatedCluster, name: str = "worker") -> str:
    (condition,) = node_of(cluster, name)["status"]["conditions"]
    return str(condition["status"])


@pytest.mark.usefixtures("approving")
def test_machine_joins_with_its_configuration(cluster: SimulatedCluster) -> None:
    assert cluster.join(configuration(cluster), KUBELET) == "worker"
    document = node_of(cluster)
    assert document["spec"]["providerID"] == "aws:///us-east-1a/i-1"
    assert document["spec"]["taints"] == [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    labels = document["metadata"]["labels"]
    assert (labels["stockyard.dev/claim"], labels["team"]) == ("ncl_1", "blue")
    assert (labels["kubernetes.io/hostname"], labels["kubernetes.io/arch"]) == ("worker", "amd64")
    assert document["status"]["capacity"] == {"cpu": "2", "memory": "8192Mi", "pods": "110"}
    assert document["status"]["allocatable"] == {"cpu": "1930m", "memory": "7792Mi", "pods": "110"}
    assert ready(cluster) == "True"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"caCertHashes": ["sha256:" + "0" * 64]}, "none of the hashes"),
        ({"token": "abcdef.fedcba9876543210"}, "401"),
        ({"token": "zzzzzz.0123456789abcdef"}, "401"),
    ],
)
def test_join_requires_valid_token_and_ca_hash(cluster: SimulatedCluster, changes: Any, why: str) -> None:
    with pytest.raises(JoinFailed, match=why):
        cluster.join(configuration(cluster, **changes), KUBELET)
    assert [key for key in cluster.api.store.objects if key.resource == "nodes"] == []


@pytest.mark.usefixtures("approving")
def test_a_token_joins_no_node_of_another_name(cluster: SimulatedCluster) -> None:
    other = configuration(cluster)
    other["nodeRegistration"]["name"] = "ip-10-0-0-5"
    with pytest.raises(JoinFailed, match="denied: the token is for the node worker, not for 'system:node:ip-10-0-0-5'"):
        cluster.join(other, KUBELET)
    assert [key for key in cluster.api.store.objects if key.resource == "nodes"] == []


def test_a_machine_that_is_switched_off_waits_no_longer(cluster: SimulatedCluster) -> None:
    with pytest.raises(JoinFailed, match="nobody has approved the request"):
        cluster.join(configuration(cluster), KUBELET, lambda: False)


def test_cluster_is_available_at_its_endpoint_until_removed(clusters: Clusters, cluster: SimulatedCluster) -> None:
    assert clusters.at(ENDPOINT) is cluster
    with pytest.raises(JoinFailed, match=r"nothing answers at other\.test:6443"):
        clusters.at("other.test:6443")
    clusters.remove(cluster)
    with pytest.raises(JoinFailed):
        clusters.at(ENDPOINT)


def test_api_is_of_the_oldest_release_of_its_members_that_are_on(clusters: Clusters, cluster: SimulatedCluster) -> None:
    """A cluster of each minor of the list becomes one of the next, a member at a time."""
    members, releases = clusters.membership(cluster), [tested.release for tested in TESTED.values()]
    members.begin(releases[0], releases[0])
    clusters.start()
    for before, after in pairwise(releases):
        until(lambda release=before: cluster.api.version == f"v{release}")
        members.add(after, after)
        assert members.release == before
        members.remove([before])
    until(lambda: cluster.api.version == f"v{releases[-1]}")
    members.add("third", "1.9.0")
    members.switch("third", on=False)
    assert members.release == releases[-1]


@pytest.mark.usefixtures("approving")
def test_silent_node_stays_and_its_pods_do_not_end(cluster: SimulatedCluster) -> None:
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


@pytest.mark.usefixtures("approving")
def test_deleted_node_is_not_registered_again(cluster: SimulatedCluster) -> None:
    cluster.join(configuration(cluster), KUBELET)
    cluster.api.store.remove(Key("", "nodes", "", "worker"), {})
    cluster.power("worker", on=False)
    cluster.power("worker", on=True)
    assert Key("", "nodes", "", "worker") not in cluster.api.store.objects


def test_control_plane_node_is_ready_and_tainted(cluster: SimulatedCluster) -> None:
    cluster.register("ip-10-0-0-5", KUBELET)
    document = node_of(cluster, "ip-10-0-0-5")
    assert CONTROL_PLANE in document["metadata"]["labels"]
    assert document["spec"]["taints"] == [{"key": CONTROL_PLANE, "effect": "NoSchedule"}]
    assert ready(cluster, "ip-10-0-0-5") == "True"


# --- the agent, as it is applied -------------------------------------------------------------------------------------


@pytest.fixture
def heard() -> Platform:
    return Platform(interval=0)


@pytest.fixture
def platform(heard: Platform) -> Iterator[HttpPlatform]:
    server = HttpPlatform(heard)
    yield server
    server.close()


def applied(cluster: SimulatedCluster, url: str) -> None:
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


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_agent_runs_from_applied_manifest_until_cluster_stops(
    clusters: Clusters, cluster: SimulatedCluster, platform: HttpPlatform, heard: Platform, tmp_path: Path
) -> None:
    clusters.start()
    cluster.register("ip-10-0-0-5", KUBELET)
    cluster.start()
    assert clusters.processes == []
    applied(cluster, platform.url)
    (first,) = until(lambda: clusters.processes)
    post = until(lambda: heard.posts)[0]
    assert [item["name"] for item in post["nodes"]] == ["ip-10-0-0-5"]
    assert post["ca_hash"] == cluster.authority.pin == pin(cluster.authority.pem)
    assert post["kubernetes_version"] == "v1.34.0"
    os.kill(first, 9)
    (second,) = until(lambda: [pid for pid in clusters.processes if pid != first])
    cluster.stop()
    assert is_gone(second)
    cluster.start()
    (third,) = until(lambda: clusters.processes)
    posts_before = len(heard.posts)
    until(lambda: len(heard.posts) > posts_before)
    clusters.remove(cluster)
    assert is_gone(third)
    assert clusters.processes == []
    assert SECRET not in (tmp_path / "agents.log").read_text()


def test_changed_deployment_restarts_its_pod(
    clusters: Clusters, cluster: SimulatedCluster, platform: HttpPlatform
) -> None:
    clusters.start()
    cluster.start()
    applied(cluster, platform.url)
    (first,) = until(lambda: clusters.processes)
    key = Key("apps", "deployments", NAMESPACE, NAME)
    with cluster.api.locked_store() as store:
        changed = json.loads(json.dumps(store.get(key)))
        changed["spec"]["template"]["metadata"]["annotations"] = {"stockyard.dev/code": "other"}
        store.replace(key, changed)
    until(lambda: clusters.processes and first not in clusters.processes)
    assert is_gone(first)
    with cluster.api.locked_store() as store:
        store.remove(key, {})
    until(lambda: not clusters.processes)


def test_pod_waits_for_missing_secret(clusters: Clusters, cluster: SimulatedCluster, platform: HttpPlatform) -> None:
    cluster.start()
    applied(cluster, platform.url)
    secret = Key("", "secrets", NAMESPACE, manifest.SECRET)
    with cluster.api.locked_store() as store:
        stored = store.get(secret)
        store.remove(secret, {})
    cluster.work()
    assert clusters.processes == []
    cluster.api.install([{name: stored[name] for name in ("apiVersion", "kind", "data")} | {"metadata": {
        "name": manifest.SECRET, "namespace": NAMESPACE}}])  # fmt: skip
    cluster.work()
    assert len(clusters.processes) == 1


def test_discovery_begins_at_its_roots():
    """As kubectl reads it before it asks for nodes."""
    api = KubeApi()
    headers = {"authorization": f"Bearer {api.administrator()}"}
    assert api.request("GET", "/api?timeout=32s", headers) == (200, {"kind": "APIVersions", "versions": ["v1"]})
    _, groups = api.request("GET", "/apis", headers)
    assert {"apps", "rbac.authorization.k8s.io"} <= {group["name"] for group in groups["groups"]}
    for group in groups["groups"]:
        status, resources = api.request("GET", f"/apis/{group['preferredVersion']['groupVersion']}", headers)
        assert (status, resources["groupVersion"]) == (200, group["versions"][0]["groupVersion"])
    _, core = api.request("GET", "/api/v1", headers)
    nodes = next(resource for resource in core["resources"] if resource["name"] == "nodes")
    assert (nodes["kind"], "list" in nodes["verbs"]) == ("Node", True)
    assert api.request("GET", "/api", {})[0] == 401


def test_a_body_that_the_simulation_does_not_read_is_refused():
    api = KubeApi()
    url = api.serve()
    try:
        headers = {"Content-Type": PROTOBUF, "Authorization": f"Bearer {api.administrator()}"}
        connection = HTTPConnection(url.removeprefix("http://"), timeout=10)
        connection.request("POST", "/api/v1/namespaces", b"k8s\x00", headers)
        with connection.getresponse() as answer:
            assert (answer.status, json.loads(answer.read())["reason"]) == (415, "UnsupportedMediaType")
        connection.close()
    finally:
        api.close()


def test_who_acts_as_a_group_without_a_user_is_refused_and_who_names_both_needs_both_rights() -> None:
    with pytest.raises(StatusError) as refused:
        impersonated({"impersonate-group": "admins"})
    assert refused.value.status == 403
    assert impersonated({}).person is None
    both = impersonated({"impersonate-user": "ann", "impersonate-group": "admins"})
    assert [(action.verb, action.resource, action.name) for action in both.actions] == [
        ("impersonate", "users", "ann"),
        ("impersonate", "groups", "admins"),
    ]
    assert both.person == Person("ann", frozenset({"admins", "system:authenticated"}))
