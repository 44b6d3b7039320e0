"""The product's tokens at a simulated cluster's API: each role may do what its access policy says, over the product's
own client."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

from local.authority import Authority
from local.aws.presigned import presigned_requests
from local.aws.token_webhook import AccessEntry, TokenWebhook, asked_at, policy_bindings
from local.kubernetes.api import KubeApi
from local.kubernetes.people import standard_roles
from stockyard.errors import CredentialsRevoked, PermissionDenied
from stockyard.providers.clouds.aws.cluster_tokens import presign
from stockyard.providers.kubernetes.client import KubernetesApi

POLICIES = {
    "viewer": "AmazonEKSViewPolicy",
    "operator": "AmazonEKSEditPolicy",
    "admin": "AmazonEKSClusterAdminPolicy",
}
CONFIG = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "default"},
    "data": {"x": "1"},
}
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s", "namespace": "default"},
    "data": {"k": "eA=="},
}
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "more"}, "rules": []}


def arn(role: str) -> str:
    return f"arn:aws:iam::222222222222:role/vantage-demo-{role}-role"


class Cluster:
    """A simulated cluster behind a webhook, and clients with tokens of each role. ``entries`` may be changed."""

    def __init__(self, authority: Authority, sts_url: str) -> None:
        self.entries = {
            role: AccessEntry.described(
                {"principalArn": arn(role), "kubernetesGroups": []},
                [{"policyArn": f"arn:aws:eks::aws:cluster-access-policy/{policy}", "accessScope": {"type": "cluster"}}],
            )
            for role, policy in POLICIES.items()
        }
        hook = TokenWebhook("demo", lambda: list(self.entries.values()), asked_at(sts_url))
        self.api = KubeApi(webhook=hook.review)
        self.api.install([*standard_roles(), *policy_bindings()])
        self._url = self.api.serve(authority.serving("apiserver"))
        self._authority = base64.b64encode(authority.pem.encode()).decode()
        self._clients: list[KubernetesApi] = []
        self._sts: Any = boto3.client("sts", region_name="us-east-1", endpoint_url=sts_url)

    def client(self, role: str, cluster: str = "demo") -> KubernetesApi:
        answer = self._sts.assume_role(RoleArn=arn(role), RoleSessionName="user-ann", DurationSeconds=900)
        keys = answer["Credentials"]
        client = KubernetesApi(
            self._url, self._authority, lambda: presign(keys, cluster, "us-east-1", datetime.now(UTC))
        )
        self._clients.append(client)
        return client

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self.api.close()


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    with presigned_requests():
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        cluster = Cluster(Authority(tmp_path_factory.mktemp("pki")), f"http://{host}:{port}")
        yield cluster
        cluster.close()
        server.stop()


def test_who_may_look_cannot_write(cluster: Cluster):
    cluster.client("admin").apply(CONFIG)
    viewer = cluster.client("viewer")
    assert viewer.get("v1", "ConfigMap", "a")["data"] == {"x": "1"}
    for attempt in (
        lambda: viewer.apply({**CONFIG, "data": {}}),
        lambda: viewer.delete("v1", "ConfigMap", "a"),
        lambda: viewer.get("v1", "Secret", "s"),
    ):
        with pytest.raises(PermissionDenied, match="403"):
            attempt()
    assert viewer.get("v1", "ConfigMap", "a")["data"] == {"x": "1"}


def test_who_works_in_a_cluster_gives_no_rights(cluster: Cluster):
    operator = cluster.client("operator")
    operator.apply(CONFIG)
    operator.apply(SECRET)
    with pytest.raises(PermissionDenied):
        operator.apply(ROLE)
    cluster.client("admin").apply(ROLE)


def test_a_token_of_another_cluster_or_role_is_nobodys(cluster: Cluster):
    for client in (cluster.client("admin", cluster="other"), cluster.client("stranger")):
        with pytest.raises(CredentialsRevoked, match="401"):
            client.get("v1", "ConfigMap", "a")


def test_without_its_entry_a_role_is_out_at_once(cluster: Cluster):
    admin = cluster.client("admin")
    admin.apply(CONFIG)
    del cluster.entries["admin"]
    with pytest.raises(CredentialsRevoked):
        admin.apply(CONFIG)


def test_a_policy_of_one_namespace_gives_nothing_elsewhere(cluster: Cluster):
    scope = {"type": "namespace", "namespaces": ["web"]}
    policy = {"policyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy", "accessScope": scope}
    cluster.entries["admin"] = AccessEntry.described({"principalArn": arn("admin")}, [policy])
    with pytest.raises(PermissionDenied):
        cluster.client("admin").apply(CONFIG)


def test_a_cluster_that_cannot_ask_sts_lets_nobody_in(cluster: Cluster):
    hook = TokenWebhook("demo", lambda: list(cluster.entries.values()), asked_at("http://127.0.0.1:1"))
    admin = cluster.client("admin")
    cluster.api.webhook = hook.review
    with pytest.raises(CredentialsRevoked):
        admin.apply(CONFIG)
