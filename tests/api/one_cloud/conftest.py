"""One local cloud for all files of this folder. A test may not expect to be alone, nor change what other tests need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local.aws.accounts import OWN_ACCOUNT
from stacks.names import Names
from stockyard.adapters.dynamodb.registry import DynamoRegistry
from stockyard.domain.records import NodeEnvironment
from stockyard.ports import Create
from tests.api.conftest import Api, served
from tests.api.one_cloud.isolation import PROFILE, ROLES

NAME = "canary-of-acme"


@pytest.fixture(scope="package")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The local cloud of this folder. It is stopped after the folder's last test."""
    with served(tmp_path_factory.mktemp("cloud")) as served_api:
        yield served_api


@pytest.fixture(scope="package")
def acme(api):
    """Everything of acme that another tenant could ask for, by kind. The cluster exists in acme alone.

    ``test_tenants_checks.py`` runs after ``test_tenants.py`` and deletes some of it at its end.
    """
    token = api.token("acme", *ROLES)
    headers = {"Authorization": f"Bearer {token}"}
    body = {
        "name": NAME,
        "description": "canary description",
        "cloud_account_id": 1,
        "cluster_type": "k8s",
        "settings": {"key_pair": "my-key"},
        "tags": {"canary-tag": "canary-value"},
    }
    cluster = api.send("POST", "/v1/clusters", headers, body)
    assert cluster.status_code == 202, cluster.text
    account = api.send("GET", "/v1/cloud-accounts/1", headers).json()
    nodes = nodes_of_acme(api, headers)
    lists = {
        path: api.send("GET", f"/v1/{path}", headers).json()["items"] for path in ("events", "audit", "operations")
    }
    assert all(lists.values()), lists
    return {
        "token": token,
        "cluster": cluster.json()["id"],
        "name": NAME,
        "client": cluster.json()["client_id"],
        "operation": cluster.json()["operation_id"],
        "account": "1",
        "role": account["attributes"]["role_arn"],
        "external id": account["external_id"],
        "event": lists["events"][0]["id"],
        "audit": lists["audit"][0]["id"],
        "tag": "canary-value",
        "description": "canary description",
        **nodes,
    }


def nodes_of_acme(api, headers):
    """Creates a provider with a node type, a claim in a set, a node environment and a profile; their ids and names."""
    kind = {"name": "canary-type", "resources": {"cpu": "1", "memory": "1Gi"}}
    provider = {"name": "canary-lab", "kind": "simulated", "spec": {"nodeTypes": [kind]}, "labels": {"canary": "lab"}}
    provider_answer = api.send("POST", "/v1/node-providers", headers, provider)
    # The claim has no cluster, which would delete it, and an unknown provider, so that it stays unchanged.
    manifest = {"apiVersion": "management.loft.sh/v1", "kind": "NodeClaim", "metadata": {"name": "canary-claim"}}
    claim = api.send("POST", "/v1/apply?set=canary-set", headers, {**manifest, "spec": {"providerRef": "nobody"}})
    assert (provider_answer.status_code, claim.status_code) == (201, 200), (provider_answer.text, claim.text)
    profile = api.send("POST", "/v1/cluster-profiles", headers, {**PROFILE, "name": "canary-profile"})
    assert profile.status_code == 201, profile.text
    site = api.send("POST", "/v1/sites", headers, {"name": "canary-site"})
    assert site.status_code == 201, site.text
    image = api.send("POST", "/v1/os-images", headers, {"name": "canary-image", "url": "https://canary.example.test/i"})
    assert image.status_code == 201, image.text
    types = api.send("GET", "/v1/node-types?provider=canary-lab", headers).json()["items"]
    environment = NodeEnvironment(
        "nev_01ARZ3NDEKTSV4RRFFQ69G5FAV", "clu_canary", provider_answer.json()["id"], "canary-lab", "t", "t"
    )
    table = api.cloud.aws.client("dynamodb", api.cloud.aws.keys(OWN_ACCOUNT))
    DynamoRegistry(table, Names("dev").table).store("acme").commit(Create(environment))
    return {
        "provider": provider_answer.json()["id"],
        "provider name": "canary-lab",
        "type": types[0]["id"],
        "type name": "canary-lab.canary-type",
        "claim": claim.json()["results"][0]["id"],
        "claim name": "canary-claim",
        "environment": environment.id,
        "profile": profile.json()["id"],
        "profile name": "canary-profile",
        "site": site.json()["id"],
        "site name": "canary-site",
        "image": image.json()["id"],
        "image name": "canary-image",
    }
