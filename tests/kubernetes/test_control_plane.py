"""Files that machines write for a real API server do what they are for; ``test_kubeadm.py`` has kubeadm's own part."""

from __future__ import annotations

import json
import ssl
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml

from stockyard.domain.values.ids import login_client
from tests.kubernetes.conftest import AUDIENCE, CLIENT, TENANT, Cluster


def name_of_caller(cluster: Cluster, **claims: Any) -> str | None:
    """The name that the API server knows the token's person by; None when it takes no such token."""
    token = cluster.realm.id_token(**claims)
    done = cluster.plane.kubectl("auth", "whoami", "-o", "yaml", token=token, check=False)
    if done.returncode:
        assert "Unauthorized" in done.stderr or "credentials" in done.stderr, done.stderr
        return None
    name: str = yaml.safe_load(done.stdout)["status"]["userInfo"]["username"]
    return name


@pytest.mark.parametrize("organization", [{TENANT: {}}, {TENANT: {"id": "1"}, "globex": {}}, [TENANT], TENANT])
def test_people_of_the_clusters_tenant_are_let_in(cluster: Cluster, organization: Any) -> None:
    assert name_of_caller(cluster, organization=organization) == "oidc:ann"


@pytest.mark.parametrize(
    "claims",
    [
        {"organization": {"globex": {}}},
        {"organization": ["globex"]},
        {"organization": "globex"},
        {"organization": f"{TENANT}-2"},
        {"organization": None},
        {"organization": {}},
        # Of the API, of the login to it, of the cluster's own client, and of another cluster of the same tenant.
        {"aud": "stockyard"},
        {"aud": "stockyard-cli"},
        {"aud": CLIENT},
        {"aud": login_client("acme-other-0123456789ab")},
        {"aud": login_client("acme-other-0123456789ab"), "azp": AUDIENCE},
        {"aud": []},
        {"iss": "https://id.example.test/realms/stockyard"},
        {"exp": int(time.time()) - 3600},
    ],
)
def test_nobody_else_is_let_in(cluster: Cluster, claims: dict[str, Any]) -> None:
    assert name_of_caller(cluster, **claims) is None


def test_without_credentials_probes_and_discovery_alone_are_answered(cluster: Cluster) -> None:
    context = ssl.create_default_context(cafile=str(cluster.plane.folder / "pki/ca.crt"))

    def status(path: str) -> int:
        try:
            with urlopen(f"{cluster.plane.url}{path}", timeout=10, context=context) as answer:  # noqa: S310
                return int(answer.status)
        except HTTPError as error:
            return error.code

    info = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
    assert (status("/livez"), status("/readyz")) == (200, 200)
    # kubeadm's own program puts the document there when it has a token to sign it with.
    assert status(info) in (200, 404)
    for path in (
        "/version",
        "/healthz",
        "/api",
        "/apis",
        "/openapi/v2",
        "/api/v1/nodes",
        "/livez/etcd",
        f"{info}/status",
    ):
        assert status(path) == 401, path


def test_a_secret_is_sealed_in_etcd_and_not_in_the_audit_log(cluster: Cluster) -> None:
    plane = cluster.plane
    plane.kubectl("create", "secret", "generic", "canary", "--from-literal", "text=canary-of-the-secret")
    document = json.loads(plane.kubectl("get", "secret", "canary", "-o", "json").stdout)
    assert set(document["data"]) == {"text"}
    stored = b"".join(path.read_bytes() for path in (plane.folder / "etcd").rglob("*") if path.is_file())
    assert b"k8s:enc:secretbox:v1:first:" in stored
    assert b"canary-of-the-secret" not in stored
    audit = (plane.folder / "audit.log").read_text()
    entries = [json.loads(line) for line in audit.splitlines()]
    assert [e for e in entries if e["verb"] == "create" and e["objectRef"].get("name") == "canary"]
    assert {entry["level"] for entry in entries} == {"Metadata"}
    assert "canary-of-the-secret" not in audit
    assert "Y2FuYXJ5" not in audit


def test_every_object_of_the_agents_manifest_is_taken(cluster: Cluster, tmp_path: Path) -> None:
    from agent import manifest

    settings = manifest.Settings("https://api.example.test", "clu_01KDVJXQ80000000000000000A", "https://id/token")
    path = tmp_path / "agent.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifest.documents(settings)}))
    options = ["--server-side", "--force-conflicts", "--field-manager=stockyard-agent"]
    done = cluster.plane.kubectl("apply", *options, "-f", str(path))
    assert "Warning" not in done.stderr, done.stderr
    assert len(done.stdout.splitlines()) == len(manifest.documents(settings))
