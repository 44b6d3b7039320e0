"""Node providers, types, claims and manifests over the served API."""

from __future__ import annotations

import itertools
import json

import pytest

NUMBERS = itertools.count()
ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin")
SMALL = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1, "maxCapacity": 1}
LARGE = {"name": "large", "resources": {"cpu": 4, "memory": "16Gi"}, "usdPerHour": 0.4}
LAB = {"name": "lab", "kind": "simulated", "spec": {"nodeTypes": [SMALL, LARGE]}}
YAML = """\
apiVersion: management.loft.sh/v1
kind: NodeProvider
metadata: {name: tf, namespace: p-x}
spec:
  terraform:
    nodeTemplate: {git: {repository: https://example.com/r.git}}
    nodeTypes:
    - {name: medium, resources: {cpu: "2", memory: 4Gi}}
---
apiVersion: management.loft.sh/v1
kind: NodeClaim
metadata: {name: one, namespace: p-x, labels: {team: a}}
spec: {vClusterRef: later, providerRef: tf, desiredCapacity: {cpu: 120m}, power: {state: On}}
status: {}
"""


class Tenant:
    """One tenant's calls."""

    def __init__(self, api, name, *roles):
        self._api = api
        self.name = name
        self.cluster = self.lab = ""
        """A cluster and a provider, where a fixture makes them."""
        self.headers = {"Authorization": f"Bearer {api.token(name, *(roles or ROLES))}"}

    def call(self, method, path, body=None, **headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._api.send(method, path, {**self.headers, **sent}, body)

    def good(self, method, path, body=None, *, status=200, **headers):
        answer = self.call(method, path, body, **headers)
        assert answer.status_code == status, answer.text
        return answer.json()

    def problem(self, status, error_type, method, path, body=None, **headers):
        answer = self.call(method, path, body, **headers)
        document = answer.json()
        assert (answer.status_code, document["error_type"]) == (status, error_type), answer.text
        return document


@pytest.fixture
def tenant(api):
    """A tenant that only this test uses. It owns nothing yet."""
    return Tenant(api, f"nodes-{next(NUMBERS)}")


@pytest.fixture
def platform(api, tenant):
    """The platform, in the tenant of this test."""
    platform_calls = Tenant(api, "platform", "stockyard-platform")
    platform_calls.headers["X-Stockyard-Tenant"] = tenant.name
    return platform_calls


def as_yaml(tenant, text, query="", **headers):
    return tenant.call("POST", f"/v1/apply{query}", text.encode(), Content_Type="application/yaml", **headers)


def test_a_provider_is_added_changed_and_removed(tenant):
    planned = tenant.good("POST", "/v1/node-providers?dry_run=true", LAB)["plan"]["creates"]
    assert [creation["name"] for creation in planned] == ["lab", "lab.small", "lab.large"]
    created = tenant.call("POST", "/v1/node-providers", LAB)
    assert (created.status_code, created.headers["etag"]) == (201, '"1"'), created.text
    provider = created.json()
    assert created.headers["location"] == f"/v1/node-providers/{provider['id']}"
    path = f"/v1/node-providers/{provider['id']}"
    assert tenant.good("GET", "/v1/node-providers/lab") == provider
    assert tenant.good("GET", "/v1/node-providers?kind=simulated")["items"] == [provider]
    assert tenant.good("GET", "/v1/node-providers?kind=ec2")["items"] == []
    change = {"properties": {"team": "a"}, "labels": {"env": "dev"}}
    plan = tenant.good("PATCH", f"{path}?dry_run=true", change, If_Match='"1"')["plan"]
    changes = [(entry["kind"], entry["name"], entry["field"], entry["pointer"]) for entry in plan["changes"]]
    assert changes == [
        ("node-provider", "lab", "properties.team", "/properties/team"),
        ("node-provider", "lab", "labels.env", "/labels/env"),
    ]
    changed = tenant.good("PATCH", path, change, If_Match='"1"')
    assert (changed["version"], changed["generation"], changed["properties"]) == (2, 2, {"team": "a"})
    assert len(tenant.good("GET", "/v1/node-providers?label=env%3Ddev")["items"]) == 1
    assert tenant.good("GET", "/v1/node-providers?label=env%3D")["items"] == []
    tenant.problem(412, "PreconditionFailed", "PATCH", path, change, If_Match='"1"')
    assert tenant.good("GET", f"{path}?form=manifest")["apiVersion"] == "stockyard/v1"
    assert tenant.good("DELETE", f"{path}?dry_run=true")["plan"]["deletes"] == [
        {"kind": "node-provider", "name": "lab"}
    ]
    deletion = tenant.good("DELETE", path, status=202)
    assert (deletion["kind"], deletion["status"], deletion["progress"]) == ("delete_node_provider", "succeeded", 100)
    assert (deletion["subject"], deletion["subject_name"]) == (provider["id"], "lab")
    tenant.problem(404, "NotFound", "GET", path)
    audit = tenant.good("GET", f"/v1/audit?subject={provider['id']}")["items"]
    assert [record["action"] for record in audit if record["outcome"] == "done"] == [
        "CreateNodeProvider",
        "ChangeNodeProvider",
        "DeleteNodeProvider",
    ]


def test_apply_can_be_told_to_create_only(tenant):
    first = as_yaml(tenant, YAML, "?create_only=true")
    assert first.status_code == 200, first.text
    assert [result["index"] for result in first.json()["results"]] == [0, 1]
    again = as_yaml(tenant, YAML, "?create_only=true")
    assert again.status_code == 409
    assert [(fault["index"], fault["kind"], fault["name"]) for fault in again.json()["errors"]] == [
        (0, "NodeProvider", "tf"),
        (1, "NodeClaim", "one"),
    ]
    assert {result["action"] for result in as_yaml(tenant, YAML).json()["results"]} == {"unchanged"}


def test_a_manifest_at_another_door_is_told_the_right_one(tenant):
    manifest = {"apiVersion": "stockyard/v1", "kind": "NodeProvider", "metadata": {"name": "x"}, "spec": {}}
    refusal = tenant.problem(422, "InvalidInput", "POST", "/v1/clusters", manifest)
    assert [fault["pointer"] for fault in refusal["errors"]] == ["/apiVersion"]
    assert "POST /v1/apply" in refusal["detail"]


def test_prices_of_a_region_are_listed_or_said_to_be_unknown(tenant):
    assert tenant.good("GET", "/v1/prices?region=ap-southeast-4")["items"], "fetched when the region is first named"
    refusal = tenant.problem(404, "NotFound", "GET", "/v1/prices?region=mars-1")
    assert refusal["detail"].startswith("Prices of mars-1 are not known")
    rates = tenant.good("GET", "/v1/prices?kind=rate&name=nat*")["items"]
    assert [(item["name"], item["unit"]) for item in rates] == [("nat_gateway", "hour"), ("nat_gateway_gb", "GB")]


def test_an_idempotency_key_creates_one_provider(tenant):
    first = tenant.call("POST", "/v1/node-providers", LAB, Idempotency_Key="k")
    again = tenant.call("POST", "/v1/node-providers", LAB, Idempotency_Key="k")
    assert (first.status_code, again.status_code, again.content) == (201, 201, first.content)
    tenant.problem(409, "InUse", "POST", "/v1/node-providers", LAB)


def test_errors_in_a_provider_specification_have_pointers(tenant):
    wrong = {**LAB, "spec": {"nodeTypes": [{**SMALL, "resources": {"cpu": True}}, {**SMALL, "colour": 1}]}}
    refusal = tenant.problem(422, "InvalidInput", "POST", "/v1/node-providers", wrong)
    pointers = {error["pointer"] for error in refusal["errors"]}
    assert pointers >= {"/spec/nodeTypes/0/resources/cpu", "/spec/nodeTypes/1/colour"}
    unknown = {"name": "aws", "kind": "ec2", "spec": {"cloudAccount": 4711}}
    for query in ("", "?dry_run=true"):
        refusal = tenant.problem(422, "InvalidInput", "POST", f"/v1/node-providers{query}", unknown)
        assert [error["pointer"] for error in refusal["errors"]] == ["/spec/cloudAccount"]


def test_node_types_show_price_cost_and_capacity(tenant):
    unpriced = {key: value for key, value in LARGE.items() if key != "usdPerHour"}
    lab = {**LAB, "spec": {"nodeTypes": [SMALL, unpriced]}, "price_per_cost_unit": 0.01}
    tenant.good("POST", "/v1/node-providers", lab, status=201)
    first = tenant.good("GET", "/v1/node-types?page_size=1")
    assert [node_type["name"] for node_type in first["items"]] == ["lab.large"]
    more = tenant.good("GET", f"/v1/node-types?page_token={first['next_page_token']}")
    assert ([node_type["name"] for node_type in more["items"]], more["next_page_token"]) == (["lab.small"], None)
    large, small = first["items"][0], more["items"][0]
    assert (large["cost"], large["usd_hour"]) == (72, pytest.approx(0.72)), "by the formula"
    assert (small["cost"], small["usd_hour"]) == (pytest.approx(10), 0.1), "by its price"
    assert small["capacity"] == {"total": 1, "claimed": 0, "available": 1, "counted_at": None}
    assert large["capacity"] == {"total": None, "claimed": None, "available": None, "counted_at": None}
    for name in (small["id"], "lab.small", "small"):
        assert tenant.good("GET", f"/v1/node-types/{name}") == small
    assert tenant.good("GET", "/v1/node-types?provider=lab&page_size=200")["items"] == [large, small]
    assert tenant.good("GET", "/v1/node-types?provider=other")["items"] == []
    tenant.problem(404, "NotFound", "GET", "/v1/node-types/lab.huge")


def test_manifests_in_yaml_and_json_are_applied_and_shown_unchanged(tenant):
    planned = as_yaml(tenant, YAML, "?dry_run=true").json()["plan"]
    assert [creation["kind"] for creation in planned["creates"]] == ["node-provider", "node-claim"]
    assert tenant.good("GET", "/v1/node-claims")["items"] == []
    first = as_yaml(tenant, YAML)
    assert first.status_code == 200, first.text
    results = first.json()["results"]
    assert [(result["kind"], result["name"], result["action"]) for result in results] == [
        ("NodeProvider", "tf", "created"),
        ("NodeClaim", "one", "created"),
    ]
    operation = tenant.good("GET", f"/v1/operations/{results[1]['operation_id']}")
    assert (operation["subject"], operation["subject_name"]) == (results[1]["id"], "one")
    provider = tenant.good("GET", "/v1/node-providers/tf?form=manifest")
    claim = tenant.good("GET", "/v1/node-claims/one?form=manifest")
    assert provider["metadata"] == {"name": "tf", "namespace": "p-x"}
    assert provider["spec"]["terraform"]["nodeTemplate"]["git"]["fetchInterval"] == "5m"
    assert claim["spec"] == {
        "vClusterRef": "later",
        "providerRef": "tf",
        "desiredCapacity": {"cpu": "120m"},
        "controlPlane": False,
    }
    again = tenant.good("POST", "/v1/apply", [provider, claim])["results"]
    assert [result["action"] for result in again] == ["unchanged", "unchanged"]
    claim["metadata"]["labels"]["team"] = "b"
    assert tenant.good("POST", "/v1/apply", claim)["results"][0]["action"] == "changed"
    labelled = tenant.good("GET", "/v1/node-claims?label=stockyard.dev%2Fnamespace%3Dp-x")["items"]
    assert [claim_view["labels"] for claim_view in labelled] == [{"team": "b", "stockyard.dev/namespace": "p-x"}]
    audited = [record["action"] for record in tenant.good("GET", "/v1/audit")["items"]]
    assert audited == ["CreateNodeProvider", "CreateNodeClaim", "ChangeNodeClaim"]


def test_a_refused_manifest_stores_nothing(tenant):
    bad = YAML.replace("name: medium", "name: Medium").replace("providerRef: tf", "providerRef: T")
    answer = as_yaml(tenant, bad)
    assert answer.status_code == 422, answer.text
    assert {error["pointer"] for error in answer.json()["errors"]} == {
        "/0/spec/terraform/nodeTypes/0/name",
        "/1/spec/providerRef",
    }
    assert tenant.good("GET", "/v1/node-providers")["items"] == []
    for raw, status in ((b"a: [", 400), (b"", 400), (b"a: &x 1\nb: *x", 400), (b"[1]", 422), (b"kind: x", 422)):
        answer = tenant.call("POST", "/v1/apply", raw, Content_Type="application/yaml")
        assert answer.status_code == status, (raw, answer.text)
    tenant.problem(415, "UnsupportedMediaType", "POST", "/v1/node-providers", b"a: 1", Content_Type="application/yaml")


def test_apply_needs_the_role_of_each_kind_of_manifest(api, tenant):
    operator = Tenant(api, tenant.name, "stockyard-operator")
    for path, body in (("/v1/node-providers", LAB), ("/v1/apply", {"kind": "NodeProvider"})):
        if path == "/v1/apply":
            assert as_yaml(operator, YAML.partition("---\n")[0]).status_code == 403
        else:
            operator.problem(403, "Forbidden", "POST", path, body)
    assert as_yaml(operator, YAML.partition("---\n")[2]).status_code == 200
    viewer = Tenant(api, tenant.name, "stockyard-viewer")
    assert len(viewer.good("GET", "/v1/node-claims")["items"]) == 1
    for method, path in (("DELETE", "/v1/node-claims/one"), ("DELETE", "/v1/node-providers/tf")):
        viewer.problem(403, "Forbidden", method, path)


def test_quotas_of_claims_are_set_and_enforced(tenant, platform):
    as_yaml(tenant, YAML)
    path = "/v1/quotas/nodeclaims.provider=tf"
    quota = platform.good("PUT", path, {"limit": 1}, If_Match='"0"')
    assert quota == {"name": "nodeclaims.provider=tf", "limit": 1, "used": 1, "version": 1}
    assert quota in tenant.good("GET", "/v1/quotas")["items"]
    two = YAML.partition("---\n")[2].replace("name: one", "name: two")
    refused = as_yaml(tenant, two)
    assert (refused.status_code, refused.json()["error_type"]) == (403, "QuotaExceeded")
    assert "project nodeclaims.provider=tf limit of 1 would be exceeded" in refused.json()["detail"]
    tenant.good("DELETE", "/v1/node-claims/one", status=202)
    assert as_yaml(tenant, two).status_code == 200
    platform.problem(404, "NotFound", "PUT", "/v1/quotas/nodes", {"limit": 1}, If_Match='"0"')


def test_the_platform_limits_the_node_types_of_a_tenant(tenant, platform):
    path = "/v1/allowed-node-types"
    assert tenant.good("GET", path) == {"allowed": None, "updated_at": None, "version": 0}
    plan = platform.good("PUT", f"{path}?dry_run=true", {"allowed": ["lab.*"]}, If_Match='"0"')["plan"]
    (change,) = plan["changes"]
    assert (change["kind"], change["pointer"]) == ("allowed-node-types", "/allowed")
    assert (change["before"], change["after"]) == (None, ["lab.*"])
    assert platform.good("PUT", path, {"allowed": ["lab.*"]}, If_Match='"0"')["version"] == 1
    assert tenant.good("GET", path)["allowed"] == ["lab.*"]
    tenant.problem(403, "Forbidden", "PUT", path, {"allowed": None}, If_Match='"1"')
    platform.problem(412, "PreconditionFailed", "PUT", path, {"allowed": None}, If_Match='"0"')
    refusal = platform.problem(422, "InvalidInput", "PUT", path, {"allowed": ["lab", "*"]}, If_Match='"1"')
    assert [error["pointer"] for error in refusal["errors"]] == ["/allowed/0", "/allowed/1"]


# --- claims -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def acme(api):
    """The tenant that can create clusters, with a cluster and a provider that only this test uses."""
    calls = Tenant(api, "acme")
    number = next(NUMBERS)
    settings = {"key_pair": "my-key"}
    body = {"name": f"of-nodes-{number}", "description": "a cluster", "cloud_account_id": 1, "cluster_type": "k8s"}
    calls.cluster = calls.good("POST", "/v1/clusters", {**body, "settings": settings}, status=202)["name"]
    calls.lab = f"lab-{number}"
    calls.good("POST", "/v1/node-providers", {**LAB, "name": calls.lab}, status=201)
    yield calls
    calls.call("DELETE", f"/v1/clusters/{calls.cluster}")


def claim_body(acme, **more):
    return {"cluster": acme.cluster, "provider": acme.lab, "resources": {"cpu": "1"}, **more}


def test_a_claim_is_planned_created_changed_explained_and_deleted(acme):
    body = claim_body(acme, name=f"c-{acme.lab}", requirements=[{"key": "kubernetes.io/os", "values": ["linux"]}])
    body["termination_grace_period"] = "soon"
    refused = acme.problem(422, "InvalidInput", "POST", "/v1/node-claims", body)
    assert [error["pointer"] for error in refused["errors"]] == ["/termination_grace_period"]
    body["termination_grace_period"] = "Never"
    plan = acme.good("POST", "/v1/node-claims?dry_run=true", body)["plan"]
    assert plan["creates"][0] == {"kind": "node-claim", "name": body["name"]}
    created = acme.call("POST", "/v1/node-claims", body)
    assert created.status_code == 202, created.text
    claim = created.json()
    assert created.headers["location"] == f"/v1/operations/{claim['operation_id']}"
    assert claim["requirements"] == [
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"], "min_values": None}
    ]
    path = f"/v1/node-claims/{claim['id']}"
    for query in (f"cluster={acme.cluster}", f"cluster={claim['cluster_id']}", f"provider={acme.lab}&phase=Pending"):
        assert [item["id"] for item in acme.good("GET", f"/v1/node-claims?{query}")["items"]] == [claim["id"]], query
    assert acme.good("GET", "/v1/node-claims?cluster=nowhere")["items"] == []
    # The scheduler may write the claim between the two calls.
    for _ in range(20):
        etag = acme.call("GET", path).headers["etag"]
        changed = acme.call("PATCH", path, {"labels": {"a": "b"}}, If_Match=etag)
        if changed.status_code != 412:
            break
    assert (changed.status_code, changed.json()["labels"]) == (200, {"a": "b"}), changed.text
    refused = acme.problem(422, "InvalidInput", "PATCH", path, {"cluster": "x"}, If_Match=etag)
    assert [error["pointer"] for error in refused["errors"]] == ["/cluster"]
    explained = acme.good("GET", f"{path}/explanation")
    assert explained["claim"] == claim["id"]
    waiting = acme.call("POST", f"{path}/power", {"state": "Off"})
    assert (waiting.status_code, waiting.json()["error_type"]) == (409, "IllegalTransition")
    acme.problem(409, "InUse", "DELETE", f"/v1/node-providers/{acme.lab}")
    assert claim["termination_grace_period"] == "Never"
    acme.problem(422, "InvalidInput", "DELETE", f"{path}?grace_seconds=-1")
    leaving = f"/v1/node-claims?cluster={acme.cluster}&phase=Deleting"
    assert acme.good("GET", leaving)["items"] == []
    assert acme.good("DELETE", f"{path}?grace_seconds=0", status=202)["subject"] == claim["id"]
    # it may be gone before the list is read
    assert {item["id"] for item in acme.good("GET", leaving)["items"]} <= {claim["id"]}
    assert acme.call("GET", path).status_code in (200, 404)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"cluster": "nowhere"}, "/cluster"),
        ({"provider": "nobody"}, "/provider"),
        ({"type": "huge"}, "/type"),
        ({"requirements": [{"key": "a", "operator": "Gt", "values": ["x"]}]}, "/requirements/0"),
    ],
)
def test_a_claim_with_an_unknown_reference_is_refused(acme, change, pointer):
    for query in ("", "?dry_run=true"):
        refusal = acme.problem(422, "InvalidInput", "POST", f"/v1/node-claims{query}", {**claim_body(acme), **change})
        assert [error["pointer"] for error in refusal["errors"]] == [pointer]


def test_the_document_lists_the_answers_of_power_and_the_formats_of_apply(acme, document_path):
    document = json.loads(document_path.read_text(encoding="utf-8"))
    claims = document["paths"]["/v1/node-claims/{id}/power"]["post"]
    assert set(claims["responses"]) >= {"202", "404", "409", "422"}
    apply = document["paths"]["/v1/apply"]["post"]["requestBody"]["content"]
    assert set(apply) == {"application/json", "application/yaml"}
