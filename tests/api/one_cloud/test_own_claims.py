"""The client of a cluster can use the node claims of its own cluster and no other claims of its tenant."""

from __future__ import annotations

import pytest

ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin")
TENANT = "acme"
WAITS = {"requirements": [{"key": "team", "operator": "In", "values": ["nobody-s"]}]}
"""No node type fits this. So a claim stays unchanged when its cluster becomes ready during a test."""


class Caller:
    """Calls with one token."""

    def __init__(self, api, *roles, **more):
        self._api = api
        self._headers = {"Authorization": f"Bearer {api.token(TENANT, *roles, **more)}"}

    def __call__(self, method, path, body=None, **headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._api.send(method, f"/v1/{path}", {**self._headers, **sent}, body)


@pytest.fixture(scope="module")
def person(api):
    """Calls of a person of the tenant."""
    return Caller(api, *ROLES)


@pytest.fixture(scope="module")
def clusters(api, person):
    """Two clusters, each with the calls of its own client, by name."""
    clusters_with_clients = {}
    for name in ("one", "two"):
        body = {
            "name": name,
            "description": "a cluster",
            "cloud_account_id": 1,
            "cluster_type": "k8s",
            "settings": {"key_pair": "my-key"},
        }
        created = person("POST", "clusters", body)
        assert created.status_code == 202, created.text
        clusters_with_clients[name] = (created.json(), Caller(api, client_id=created.json()["client_id"]))
    return clusters_with_clients


@pytest.fixture(scope="module")
def client(clusters):
    """The client of the cluster ``one``."""
    return clusters["one"][1]


@pytest.fixture(scope="module")
def foreign_claims(person, clusters):
    """Ids and names of a claim of the other cluster and of a claim without a cluster."""
    created = person("POST", "node-claims", {"name": "theirs", "cluster": "two", **WAITS})
    assert created.status_code == 202, created.text
    manifest = {"apiVersion": "management.loft.sh/v1", "kind": "NodeClaim", "metadata": {"name": "nobodys"}}
    nobodys = person("POST", "apply", {**manifest, "spec": {"providerRef": "nobody"}})
    assert nobodys.status_code == 200, nobodys.text
    return {created.json()["id"], "theirs", nobodys.json()["results"][0]["id"], "nobodys"}


def names(answer):
    assert answer.status_code == 200, answer.text
    return {claim["name"] for claim in answer.json()["items"]}


def test_a_cluster_client_is_shown_no_template_of_the_tenant(client, person):
    body = {"cluster": "one", **WAITS}
    for query, expected in (("dry_run=true&run=true", 403), ("run=true", 422), ("dry_run=true", 200)):
        answer = client("POST", f"node-claims?{query}", body)
        assert answer.status_code == expected, (query, answer.text)
    answer = person("POST", "node-claims?dry_run=true&run=true", body)
    assert (answer.status_code, answer.json()["plan"]["run"]) == (200, None), answer.text


def test_a_cluster_client_creates_reads_and_deletes_claims_of_its_own_cluster(client, clusters, person, foreign_claims):
    cluster = clusters["one"][0]
    for name, named in (("by-name", "one"), ("by-id", cluster["id"])):
        created = client("POST", "node-claims", {"name": name, "cluster": named, **WAITS})
        assert (created.status_code, created.json()["cluster_id"]) == (202, cluster["id"]), created.text
        assert created.json()["created_by"] == f"client:{cluster['client_id']}"
    assert client("GET", "node-claims/by-name").json()["name"] == "by-name"
    assert names(client("GET", "node-claims")) == {"by-name", "by-id"}
    assert names(client("GET", "node-claims?cluster=one")) == {"by-name", "by-id"}
    assert {"by-name", "by-id", "theirs"} <= names(person("GET", "node-claims"))
    plan = client("DELETE", "node-claims/by-id?dry_run=true")
    assert plan.status_code == 200, plan.text
    for name in ("by-name", "by-id"):
        assert client("DELETE", f"node-claims/{name}").status_code == 202
    assert names(client("GET", "node-claims")) == set()


def test_a_cluster_client_reads_and_deletes_claims_that_a_person_created_for_its_cluster(client, person):
    assert person("POST", "node-claims", {"name": "given", "cluster": "one", **WAITS}).status_code == 202
    assert names(client("GET", "node-claims")) == {"given"}
    assert client("DELETE", "node-claims/given").status_code == 202


def test_other_claims_do_not_exist_for_a_cluster_client(client, person, foreign_claims):
    for query in ("", "?cluster=two", "?label=a=b", "?page_size=1"):
        assert names(client("GET", f"node-claims{query}")) == set()
    for claim in foreign_claims:
        unknown = client("GET", f"node-claims/{claim}x")
        for method, more in (("GET", ""), ("GET", "?form=manifest"), ("DELETE", ""), ("DELETE", "?dry_run=true")):
            answer = client(method, f"node-claims/{claim}{more}")
            assert answer.status_code == 404, answer.text
            assert answer.json()["detail"] == unknown.json()["detail"].replace(f"{claim}x", claim)
        assert person("GET", f"node-claims/{claim}").json()["deleting"] is False


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
@pytest.mark.parametrize("reference", ["name", "id", "unknown"])
def test_a_cluster_client_cannot_create_claims_for_another_cluster(client, clusters, reference, query):
    named = "nowhere" if reference == "unknown" else clusters["two"][0][reference]
    answer = client("POST", f"node-claims{query}", {"name": "foreign", "cluster": named})
    assert (answer.status_code, answer.json()["errors"]) == (
        422,
        [{"pointer": "/cluster", "detail": f"There is no cluster {named}."}],
    )


def test_routes_for_people_refuse_a_cluster_client(client, person):
    assert person("POST", "node-claims", {"name": "closed", "cluster": "one", **WAITS}).status_code == 202
    for method, path, body in (
        ("GET", "node-claims/closed/explanation", None),
        ("PATCH", "node-claims/closed", {}),
        ("POST", "node-claims/closed/power", {"state": "Off"}),
        ("GET", "node-providers", None),
        ("GET", "node-types", None),
        ("GET", "clusters", None),
    ):
        assert client(method, path, body, If_Match='"1"').status_code == 403, path
    assert person("DELETE", "node-claims/closed").status_code == 202


def test_idempotency_keys_of_others_neither_answer_nor_block_a_cluster_client(client, clusters, person):
    body = {"cluster": "one", "name": "keyed", **WAITS}
    assert person("POST", "node-claims", body, Idempotency_Key="same").status_code == 202
    foreign = {"cluster": "two", "name": "other", **WAITS}
    assert clusters["two"][1]("POST", "node-claims", foreign, Idempotency_Key="same").status_code == 202
    second = client("POST", "node-claims", body, Idempotency_Key="same")
    assert (second.status_code, second.json()["error_type"]) == (409, "InUse")
    assert client("POST", "node-claims", {**body, "name": "again"}, Idempotency_Key="own").status_code == 202
    replayed = client("POST", "node-claims", {**body, "name": "again"}, Idempotency_Key="own")
    assert (replayed.status_code, replayed.headers["idempotent-replayed"]) == (202, "true")
    for name in ("keyed", "again"):
        assert client("DELETE", f"node-claims/{name}").status_code == 202
    assert person("DELETE", "node-claims/other").status_code == 202


def test_a_cluster_client_tells_of_the_pods_of_its_own_cluster_alone(client, clusters, person):
    body = {"sequence": 1, "observed_at": "2026-01-01T00:00:00.000Z", "agent_version": "1", "groups": {}, "pending": {}}
    own, other = (clusters[name][0]["id"] for name in ("one", "two"))
    answer = client("POST", f"clusters/{own}/pending-pods", body)
    # The cluster's own agent may have reported before, with a later number.
    assert answer.status_code == 200, answer.text
    assert client("POST", f"clusters/{other}/pending-pods", body).status_code == 404
    assert person("POST", f"clusters/{own}/pending-pods", body).status_code == 403


def test_a_cluster_client_reads_the_mirror_of_its_own_cluster_alone(client, clusters, person):
    own, other = (clusters[name][0]["id"] for name in ("one", "two"))
    assert person("POST", f"clusters/{own}/pools", {"name": "few", "quantity": 0}).status_code == 201
    answer = client("GET", f"clusters/{own}/mirror")
    assert answer.status_code == 200, answer.text
    assert [(each["kind"], each["name"]) for each in answer.json()["objects"]] == [("NodePool", "few")]
    assert answer.json()["after"] == ""
    assert client("GET", f"clusters/{other}/mirror").status_code == 404
    assert person("GET", f"clusters/{own}/mirror").status_code == 403
    assert person("DELETE", f"clusters/{own}/pools/few").status_code == 202


def test_a_pool_is_shown_as_its_document_to_its_cluster_and_no_other(person, clusters, client):
    pool = {"name": "gpu", "quantity": 1, "terminationGracePeriod": "1h"}
    auto_nodes = [{"provider": "nobody", "static": [pool]}]
    label = {"labels": {"stockyard.dev/cluster": "two"}}
    document = {"metadata": label, "privateNodes": {"enabled": True, "autoNodes": auto_nodes}, "sync": {}}
    planned = person("POST", "apply?dry_run=true", document).json()["plan"]
    assert {"kind": "pool", "name": "gpu"} in planned["creates"]
    applied = person("POST", "apply", document)
    assert applied.status_code == 200, applied.text
    assert [result["action"] for result in applied.json()["results"]] == ["created"]
    note = {"pointer": "/0/sync", "detail": "This part is not looked at.", "note": True}
    assert note in applied.json()["warnings"]
    path = f"clusters/{clusters['two'][0]['id']}/pools/gpu"
    for caller in (person, clusters["two"][1]):
        shown_document = caller("GET", f"{path}?form=manifest").json()
        assert shown_document == {"privateNodes": {"enabled": True, "autoNodes": auto_nodes}}
    assert client("GET", f"{path}?form=manifest").status_code == 404
    again = person("POST", "apply", {**shown_document, "metadata": label}).json()["results"]
    assert [result["action"] for result in again] == ["unchanged"]
    assert person("DELETE", path).status_code == 202
