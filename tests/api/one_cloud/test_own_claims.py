"""A cluster's own client and the node claims of its tenant: those of its cluster, and no others."""

from __future__ import annotations

import pytest

ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin")
TENANT = "acme"
WAITS = {"requirements": [{"key": "team", "operator": "In", "values": ["nobody-s"]}]}
"""No node type fits, so that a claim stays as it is when its cluster becomes ready meanwhile."""


class Caller:
    """One token's calls."""

    def __init__(self, api, *roles, **more):
        self._api = api
        self._headers = {"Authorization": f"Bearer {api.token(TENANT, *roles, **more)}"}

    def __call__(self, method, path, body=None, **headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._api.send(method, f"/v1/{path}", {**self._headers, **sent}, body)


@pytest.fixture(scope="module")
def person(api):
    """Somebody of the tenant."""
    return Caller(api, *ROLES)


@pytest.fixture(scope="module")
def clusters(api, person):
    """Two clusters, each with the calls of its own client."""
    found = {}
    for name in ("one", "two"):
        body = {
            "name": name,
            "description": "",
            "cloud_account_id": 1,
            "cluster_type": "k8s",
            "settings": {"key_pair": "my-key"},
        }
        made = person("POST", "clusters", body)
        assert made.status_code == 202, made.text
        found[name] = (made.json(), Caller(api, client_id=made.json()["client_id"]))
    return found


@pytest.fixture(scope="module")
def client(clusters):
    """The client of the cluster ``one``."""
    return clusters["one"][1]


@pytest.fixture(scope="module")
def theirs(person, clusters):
    """Claims of the other cluster, and of none."""
    made = person("POST", "node-claims", {"name": "theirs", "cluster": "two", **WAITS})
    assert made.status_code == 202, made.text
    manifest = {"apiVersion": "management.loft.sh/v1", "kind": "NodeClaim", "metadata": {"name": "nobodys"}}
    nobodys = person("POST", "apply", {**manifest, "spec": {"providerRef": "nobody"}})
    assert nobodys.status_code == 200, nobodys.text
    return {made.json()["id"], "theirs", nobodys.json()["results"][0]["id"], "nobodys"}


def names(answer):
    assert answer.status_code == 200, answer.text
    return {one["name"] for one in answer.json()["items"]}


def test_it_makes_sees_and_gives_back_claims_of_its_own_cluster(client, clusters, person, theirs):
    cluster = clusters["one"][0]
    for name, named in (("by-name", "one"), ("by-id", cluster["id"])):
        made = client("POST", "node-claims", {"name": name, "cluster": named, **WAITS})
        assert (made.status_code, made.json()["cluster_id"]) == (202, cluster["id"]), made.text
        assert made.json()["created_by"] == f"client:{cluster['client_id']}"
    assert client("GET", "node-claims/by-name").json()["name"] == "by-name"
    assert names(client("GET", "node-claims")) == {"by-name", "by-id"}
    assert names(client("GET", "node-claims?cluster=one")) == {"by-name", "by-id"}
    assert {"by-name", "by-id", "theirs"} <= names(person("GET", "node-claims"))
    plan = client("DELETE", "node-claims/by-id?dry_run=true")
    assert plan.status_code == 200, plan.text
    for name in ("by-name", "by-id"):
        assert client("DELETE", f"node-claims/{name}").status_code == 202
    assert names(client("GET", "node-claims")) == set()


def test_claims_that_a_person_makes_for_its_cluster_are_its_own_too(client, person):
    assert person("POST", "node-claims", {"name": "given", "cluster": "one", **WAITS}).status_code == 202
    assert names(client("GET", "node-claims")) == {"given"}
    assert client("DELETE", "node-claims/given").status_code == 202


def test_of_other_claims_there_are_none(client, person, theirs):
    for query in ("", "?cluster=two", "?label=a=b", "?page_size=1"):
        assert names(client("GET", f"node-claims{query}")) == set()
    for asked in theirs:
        unknown = client("GET", f"node-claims/{asked}x")
        for method, more in (("GET", ""), ("GET", "?form=manifest"), ("DELETE", ""), ("DELETE", "?dry_run=true")):
            answer = client(method, f"node-claims/{asked}{more}")
            assert answer.status_code == 404, answer.text
            assert answer.json()["detail"] == unknown.json()["detail"].replace(f"{asked}x", asked)
        assert person("GET", f"node-claims/{asked}").json()["deleting"] is False


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
@pytest.mark.parametrize("which", ["name", "id", "unknown"])
def test_it_claims_nothing_for_another_cluster(client, clusters, which, query):
    named = "nowhere" if which == "unknown" else clusters["two"][0][which]
    answer = client("POST", f"node-claims{query}", {"name": "foreign", "cluster": named})
    assert (answer.status_code, answer.json()["errors"]) == (
        422,
        [{"pointer": "/cluster", "detail": f"There is no cluster {named}."}],
    )


def test_what_is_for_people_is_closed_to_it(client, person):
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


def test_an_idempotency_key_of_somebody_else_gives_it_no_answer_of_theirs_and_does_not_stop_it(
    client, clusters, person
):
    body = {"cluster": "one", "name": "keyed", **WAITS}
    assert person("POST", "node-claims", body, Idempotency_Key="same").status_code == 202
    other = {"cluster": "two", "name": "other", **WAITS}
    assert clusters["two"][1]("POST", "node-claims", other, Idempotency_Key="same").status_code == 202
    second = client("POST", "node-claims", body, Idempotency_Key="same")
    assert (second.status_code, second.json()["error_type"]) == (409, "InUse")
    assert client("POST", "node-claims", {**body, "name": "again"}, Idempotency_Key="own").status_code == 202
    replayed = client("POST", "node-claims", {**body, "name": "again"}, Idempotency_Key="own")
    assert (replayed.status_code, replayed.headers["idempotent-replayed"]) == (202, "true")
    for name in ("keyed", "again"):
        assert client("DELETE", f"node-claims/{name}").status_code == 202
    assert person("DELETE", "node-claims/other").status_code == 202
