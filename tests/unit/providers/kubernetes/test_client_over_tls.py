"""The client of the Kubernetes API works with the simulated API over TLS, and gives its token to no other
server."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from local.authority import Authority
from local.kubernetes.api import Fault, KubeApi, node
from local.kubernetes.store import Key
from stockyard.errors import CredentialsRevoked, PermissionDenied, VendorNotFound, VendorRefused, VendorUnavailable
from stockyard.providers.kubernetes import client as client_module
from stockyard.providers.kubernetes.client import KubernetesApi
from stockyard.providers.kubernetes.errors import ObjectChanged
from tests.unit.providers.kubernetes.conftest import CONFIG, NAMESPACE, SECRET

pytestmark = pytest.mark.usefixtures("no_pauses")


class Cluster:
    """A simulated cluster behind TLS and a client with its administrator's token."""

    def __init__(self, authority: Authority, trusted: Authority | None = None) -> None:
        self.api = KubeApi()
        self.token = self.api.administrator()
        self.url = self.api.serve(authority.serving("apiserver"))
        pem = base64.b64encode((trusted or authority).pem.encode()).decode()
        self.client = KubernetesApi(self.url, pem, lambda: self.token)

    def close(self) -> None:
        self.client.close()
        self.api.close()


@pytest.fixture
def cluster(authority: Authority) -> Iterator[Cluster]:
    cluster = Cluster(authority)
    yield cluster
    cluster.close()


def test_objects_come_change_and_go(cluster: Cluster):
    client = cluster.client
    for document in (NAMESPACE, CONFIG, SECRET):
        client.apply(document)
    assert client.get("v1", "ConfigMap", "a", "web")["data"] == {"x": "1"}
    version = client.get("v1", "Secret", "s", "web")["metadata"]["resourceVersion"]
    assert client.apply(SECRET)["metadata"]["resourceVersion"] == version, "applied again, nothing changes"
    assert client.apply({**CONFIG, "data": {"y": "2"}})["data"] == {"y": "2"}, "what is no longer sent is removed"
    assert [item["metadata"]["name"] for item in client.list("v1", "ConfigMap")] == ["a"]
    assert client.list("v1", "ConfigMap", "other") == []
    client.delete("v1", "ConfigMap", "a", "web")
    client.delete("v1", "ConfigMap", "a", "web")
    assert client.get("v1", "ConfigMap", "a", "web") is None


def test_a_field_of_somebody_else_becomes_ours_and_theirs_stay(cluster: Cluster):
    with cluster.api.locked_store() as store:
        other = {**CONFIG, "data": {"x": "theirs", "z": "theirs"}}
        from local.kubernetes import apply as kube_apply

        kube_apply.apply(store, Key("", "configmaps", "web", "a"), other, "somebody", force=True)
    assert cluster.client.apply(CONFIG)["data"] == {"x": "1", "z": "theirs"}


def test_what_was_compared_is_changed_by_the_first_alone(cluster: Cluster):
    cluster.client.apply(NAMESPACE)
    version = cluster.client.apply(CONFIG)["metadata"]["resourceVersion"]
    wish = {**CONFIG, "data": {"x": "1", "owner": "a"}}
    first = cluster.client.apply(wish, resource_version=version)
    assert first["data"] == wish["data"]
    for force in (True, False):
        with pytest.raises(ObjectChanged, match="409 Conflict"):
            cluster.client.apply({**wish, "data": {"owner": "b"}}, resource_version=version, force=force)
    with pytest.raises(ObjectChanged, match=r"\.data\.owner"):
        cluster.client.apply({**CONFIG, "data": {"owner": "b"}}, manager="other", force=False)
    assert cluster.client.get("v1", "ConfigMap", "a", "web") == first
    cluster.client.delete("v1", "ConfigMap", "a", "web")
    meta = first["metadata"]
    with pytest.raises(ObjectChanged, match="uid mismatch"):
        cluster.client.apply(wish, resource_version=meta["resourceVersion"], uid=meta["uid"])
    assert cluster.client.get("v1", "ConfigMap", "a", "web") is None
    again = cluster.client.apply(wish, resource_version=meta["resourceVersion"])
    assert again["metadata"]["uid"] != meta["uid"], "a version alone does not keep what is gone away"


def test_of_many_who_compare_the_same_version_one_wins(cluster: Cluster):
    cluster.client.apply(NAMESPACE)
    version = cluster.client.apply(CONFIG)["metadata"]["resourceVersion"]

    def take(name: str) -> bool:
        try:
            cluster.client.apply({**CONFIG, "data": {"owner": name}}, resource_version=version)
        except ObjectChanged:
            return False
        return True

    cluster.client.get("v1", "ConfigMap", "a", "web")  # the connection is made before there are threads
    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(take, "abcdef")) == 1


def test_a_field_that_no_schema_has_is_named(cluster: Cluster):
    cluster.client.apply(NAMESPACE)
    for data, fault in (
        ({"data1": {}}, r"500: \.data1 \(field not declared in schema\)"),
        ({"data": {"a": 17}}, r"500: \.data\.a \(expected string\)"),
    ):
        with pytest.raises(VendorRefused, match=fault) as refused:
            cluster.client.apply({**CONFIG, **data})
        assert "17" not in refused.value.detail


def test_a_definition_is_served_as_soon_as_it_is_there(cluster: Cluster):
    widget = {"apiVersion": "example.test/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    with pytest.raises(VendorNotFound):
        cluster.client.apply(widget)
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.test", "names": names, "scope": "Cluster", "versions": [version]}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.test"}, "spec": spec,
    }  # fmt: skip
    cluster.client.apply(definition)
    assert cluster.client.apply(widget)["spec"] == {"size": 1}


def test_more_objects_than_a_page_has(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    cluster.api.install([{**node(f"n{number}")} for number in range(5)])
    monkeypatch.setattr(client_module, "PAGE", 2)
    items = cluster.client.list("v1", "Node", labels="kubernetes.io/os=linux")
    assert [item["metadata"]["name"] for item in items] == ["n0", "n1", "n2", "n3", "n4"]
    assert cluster.client.list("v1", "Node", labels="kubernetes.io/os=windows") == []


def test_a_token_that_is_no_longer_good(cluster: Cluster):
    cluster.api.revoke(cluster.token)
    with pytest.raises(CredentialsRevoked, match="401 Unauthorized"):
        cluster.client.apply(NAMESPACE)


def test_who_may_not_write_is_refused(cluster: Cluster):
    cluster.token = cluster.api.issue("web", "viewer")
    with pytest.raises(PermissionDenied, match="403 Forbidden"):
        cluster.client.apply(CONFIG)


@pytest.mark.parametrize("reset", ["before", "after"])
def test_a_lost_answer_is_repaired_by_the_next_try(cluster: Cluster, reset: str):
    cluster.client.apply(NAMESPACE)
    cluster.api.faults.append(Fault("patch", "configmaps", reset=reset, times=2))
    assert cluster.client.apply(CONFIG)["data"] == {"x": "1"}
    cluster.api.faults.append(Fault("delete", "configmaps", reset=reset, times=2))
    cluster.client.delete("v1", "ConfigMap", "a", "web")
    assert cluster.client.get("v1", "ConfigMap", "a", "web") is None


def test_a_server_of_another_authority_gets_no_token(authority: Authority, tmp_path: Path):
    cluster = Cluster(authority, trusted=Authority(tmp_path))
    try:
        with pytest.raises(VendorRefused, match="not of the cluster's authority"):
            cluster.client.get("v1", "Node", "a")
        assert cluster.api.calls == []
    finally:
        cluster.close()


def test_nobody_answers(authority: Authority, cluster: Cluster):
    cluster.api.close()
    with pytest.raises(VendorUnavailable, match="cannot be reached"):
        cluster.client.get("v1", "Node", "a")
