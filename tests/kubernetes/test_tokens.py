"""The product's tokens and its client at a real API server that asks the local cloud's webhook, as EKS asks its own."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

from local.aws.presigned import presigned_requests
from local.aws.token_server import served_reviews
from local.aws.token_webhook import AccessEntry, TokenWebhook, asked_at, policy_bindings
from local.kubernetes.real.build import missing
from local.kubernetes.real.control_plane import ControlPlane
from stockyard.errors import CredentialsRevoked, PermissionDenied, VendorNotFound, VendorRefused
from stockyard.providers.clouds.aws.cluster_tokens import presign
from stockyard.providers.kubernetes.client import KubernetesApi
from tests.kubernetes.conftest import Realm, machine_program, machine_values
from tests.kubernetes.rigs import until

POLICIES = {
    "viewer": "AmazonEKSViewPolicy",
    "operator": "AmazonEKSEditPolicy",
    "admin": "AmazonEKSClusterAdminPolicy",
}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "c2VjcmV0"}}
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "more"}, "rules": []}


class Cluster:
    """A control plane behind the webhook, and clients with tokens of a role."""

    def __init__(self, plane: ControlPlane, sts: Any) -> None:
        self.plane, self._sts = plane, sts
        self._authority = base64.b64encode((plane.folder / "pki/ca.crt").read_bytes()).decode()
        self.clients: list[KubernetesApi] = []

    def keys(self, role: str) -> dict[str, Any]:
        arn = f"arn:aws:iam::222222222222:role/{role}"
        keys: dict[str, Any] = self._sts.assume_role(RoleArn=arn, RoleSessionName="user-ann", DurationSeconds=900)[
            "Credentials"
        ]
        return keys

    def client(self, role: str, name: str = "demo", age: timedelta = timedelta()) -> KubernetesApi:
        keys = self.keys(role)
        client = KubernetesApi(
            self.plane.url, self._authority, lambda: presign(keys, name, "us-east-1", datetime.now(UTC) - age)
        )
        self.clients.append(client)
        return client


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory, realm: Realm) -> Iterator[Cluster]:
    if reason := missing():
        pytest.skip(reason)
    state, folder = tmp_path_factory.mktemp("state"), tmp_path_factory.mktemp("plane")
    program, machine = machine_program(state), machine_values(realm)
    program.api_server(machine)
    documents = program.kubeadm(machine, {"endpoint": "https://nlb.example.test:6443"}, "aws:///us-east-1a/i-0123")
    entries = [AccessEntry(f"arn:aws:iam::222222222222:role/{role}", policies=(POLICIES[role],)) for role in POLICIES]
    with presigned_requests():
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        hook = TokenWebhook("demo", lambda: entries, asked_at(url))
        sts = boto3.client("sts", "us-east-1", endpoint_url=url, aws_access_key_id="a", aws_secret_access_key="b")
        with served_reviews(hook.review, folder) as flags:
            environment = {"SSL_CERT_FILE": str(realm.authority)}
            plane = ControlPlane(folder, documents, state / program.API_FOLDER, environment, api_flags=flags)
            with plane.running():
                cluster = Cluster(plane, sts)
                bindings = folder / "bindings.json"
                bindings.write_text(as_list(policy_bindings()))
                plane.kubectl("apply", "-f", str(bindings))
                for role in ("view", "edit"):  # a controller puts their rules together
                    rules = ("get", "clusterrole", role, "-o", "jsonpath={.rules[*].verbs}")
                    until(lambda rules=rules: plane.kubectl(*rules).stdout)
                yield cluster
                for client in cluster.clients:
                    client.close()
        server.stop()


def as_list(documents: list[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})


def test_who_may_look_cannot_write(tokens: Cluster):
    tokens.client("admin").apply(CONFIG)
    viewer = tokens.client("viewer")
    assert viewer.get("v1", "ConfigMap", "a")["data"] == {"x": "1"}
    assert "a" in [item["metadata"]["name"] for item in viewer.list("v1", "ConfigMap", "default")]
    for attempt in (
        lambda: viewer.apply({**CONFIG, "data": {"x": "2"}}),
        lambda: viewer.delete("v1", "ConfigMap", "a"),
        lambda: viewer.get("v1", "Secret", "s"),
        lambda: viewer.list("v1", "Secret"),
    ):
        with pytest.raises(PermissionDenied, match="403 Forbidden"):
            attempt()
    assert viewer.get("v1", "ConfigMap", "a")["data"] == {"x": "1"}


def test_who_works_in_a_cluster_gives_no_rights(tokens: Cluster):
    operator = tokens.client("operator")
    operator.apply(SECRET)
    assert operator.get("v1", "Secret", "s")["data"] == SECRET["data"]
    with pytest.raises(PermissionDenied):
        operator.apply(ROLE)
    tokens.client("admin").apply(ROLE)


def test_a_token_of_another_cluster_a_stranger_or_an_earlier_hour_is_nobodys(tokens: Cluster):
    for client in (
        tokens.client("admin", name="other"),
        tokens.client("stranger"),
        tokens.client("admin", age=timedelta(minutes=16)),
    ):
        with pytest.raises(CredentialsRevoked, match="401 Unauthorized"):
            client.get("v1", "ConfigMap", "a")


def test_kubectl_takes_a_token_too(tokens: Cluster):
    token = presign(tokens.keys("admin"), "demo", "us-east-1", datetime.now(UTC))
    answer = tokens.plane.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}", token=token)
    assert answer.stdout == "arn:aws:sts::222222222222:assumed-role/admin/user-ann"


def test_objects_come_change_and_go(tokens: Cluster):
    admin = tokens.client("admin")
    document = {**CONFIG, "metadata": {"name": "b", "labels": {"app": "b"}}}
    version = admin.apply(document)["metadata"]["resourceVersion"]
    assert admin.apply(document)["metadata"]["resourceVersion"] == version, "applied again, nothing changes"
    assert admin.apply({**document, "data": {"y": "2"}})["data"] == {"y": "2"}
    assert [item["metadata"]["name"] for item in admin.list("v1", "ConfigMap", labels="app=b")] == ["b"]
    admin.delete("v1", "ConfigMap", "b")
    admin.delete("v1", "ConfigMap", "b")
    assert admin.get("v1", "ConfigMap", "b") is None
    assert admin.get("example.test/v1", "Widget", "w") is None


def test_a_real_server_quotes_a_secret_and_we_do_not(tokens: Cluster):
    admin = tokens.client("admin")
    for document in (
        {**SECRET, "data": {"not a key!": "c2VjcmV0LXZhbHVl"}},
        {**SECRET, "data": {"k": "not base64: secret-value"}},
        {**SECRET, "data": {"k": {"secret-value": "x"}}},
    ):
        with pytest.raises(VendorRefused) as caught:
            admin.apply(document)
        assert "secret-value" not in str(caught.value)
        assert "c2VjcmV0LXZhbHVl" not in str(caught.value)
    with pytest.raises(VendorNotFound):
        admin.apply({**CONFIG, "metadata": {"name": "a", "namespace": "nowhere"}})
