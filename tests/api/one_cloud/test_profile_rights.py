"""The rights of packs are those of the caller's role, on each way by which profiles are chosen."""

from __future__ import annotations

import pytest

from local.testing.example import body_without_nodes

ROLE = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader}, rules: []}"
SECRET = "{apiVersion: v1, kind: Secret, metadata: {name: password}, stringData: {password: hunter2}}"
OWN = "{apiVersion: v1, kind: ConfigMap, metadata: {name: stockyard-agent, namespace: stockyard-system}}"


def document(name: str, content: str) -> dict[str, object]:
    pack = {"layer": "addon", "name": "pack", "tag": "1", "manifests": [{"name": "m", "content": content}]}
    return {"name": name, "version": "1.0.0", "cloud": "any", "packs": [pack]}


@pytest.fixture(scope="module")
def headers(api):
    roles = ("stockyard-viewer", "stockyard-operator", "stockyard-admin")
    return {
        role: {"Authorization": f"Bearer {api.token('acme', f'stockyard-{role}')}"}
        for role in (role.removeprefix("stockyard-") for role in roles)
    }


def test_an_operator_chooses_what_gives_no_rights_or_an_administrator_has_allowed(api, headers):
    for name, role in (("by-operator", "operator"), ("by-admin", "admin")):
        answer = api.send("POST", "/v1/cluster-profiles", headers[role], document(name, ROLE))
        assert answer.status_code == 201, answer.text

    def creation(role: str, profile: str, version: str | None = "1.0.0") -> tuple[int, list[str]]:
        body = {**body_without_nodes(), "name": "rights", "profiles": [{"name": profile, "version": version}]}
        answer = api.send("POST", "/v1/clusters?dry_run=true", headers[role], body)
        return answer.status_code, [fault["pointer"] for fault in answer.json().get("errors", ())]

    assert creation("operator", "by-operator") == (422, ["/profiles/0"])
    assert creation("operator", "by-admin") == (200, [])
    assert creation("admin", "by-operator") == (200, [])
    assert creation("admin", "by-operator", None) == (422, ["/profiles/0"]), "the newest version is nobody's choice"


def test_an_operator_replaces_nothing_that_an_administrator_has_made(api, headers):
    for name, role in (("own", "operator"), ("admins", "admin")):
        answer = api.send("POST", "/v1/cluster-profiles", headers[role], document(name, ROLE))
        assert answer.json()["versions"][0]["rights"] == role
    for query in ("?dry_run=true", ""):
        assert api.send("DELETE", f"/v1/cluster-profiles/admins{query}", headers["operator"]).status_code == 403
    assert api.send("DELETE", "/v1/cluster-profiles/own", headers["operator"]).status_code == 202
    assert api.send("DELETE", "/v1/cluster-profiles/admins", headers["admin"]).status_code == 202


def test_secrets_and_the_agents_objects_are_in_no_version(api, headers):
    for content, word in ((SECRET, "Secret password"), (OWN, "ConfigMap stockyard-system/stockyard-agent")):
        answer = api.send("POST", "/v1/cluster-profiles?dry_run=true", headers["admin"], document("held", content))
        (fault,) = answer.json()["errors"]
        assert (answer.status_code, fault["pointer"]) == (422, "/packs/0/manifests")
        assert word in fault["detail"]
        assert "hunter2" not in answer.text


def test_a_comparison_with_the_cluster_is_not_for_viewers(api, headers, acme):
    path = f"/v1/clusters/{acme['cluster']}/profiles"
    assert api.send("GET", path, headers["viewer"]).status_code == 200
    assert api.send("GET", f"{path}?refresh=true", headers["viewer"]).status_code == 403
    assert api.send("GET", f"{path}?refresh=true", headers["operator"]).status_code == 409
