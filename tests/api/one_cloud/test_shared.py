"""Node providers that the platform shares with all tenants, over the served API. None is left for other tests."""

from __future__ import annotations

import pytest

from .test_nodes import LAB, Tenant, as_yaml
from .test_waking import Tenant as Waiting
from .test_waking import available, waits_for

ONE = {"name": "one", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1, "maxCapacity": 1}
SHARED = {"name": "ours", "kind": "simulated", "spec": {"nodeTypes": [ONE]}}


@pytest.fixture
def platform(api):
    """The platform itself; what it shares is gone at the end."""
    found = Tenant(api, "platform", "stockyard-platform")
    found.headers["X-Stockyard-Tenant"] = "_platform"
    yield found
    for one in found.good("GET", "/v1/node-providers")["items"]:
        found.good("DELETE", f"/v1/node-providers/{one['id']}", status=202)


def test_all_tenants_see_what_the_platform_shares(api, platform):
    plan = platform.good("POST", "/v1/node-providers?dry_run=true", SHARED)["plan"]
    assert [one["name"] for one in plan["creates"]] == ["ours", "ours.one"]
    first = platform.call("POST", "/v1/node-providers", SHARED, Idempotency_Key="share")
    again = platform.call("POST", "/v1/node-providers", SHARED, Idempotency_Key="share")
    assert (first.status_code, again.content) == (201, first.content), first.text
    made = first.json()
    assert (made["shared"], made["spec"]["nodeTypes"][0]["name"]) == (True, "one")
    platform.problem(409, "InUse", "POST", "/v1/node-providers", SHARED)
    for name in ("seer-1", "seer-2"):
        tenant = Tenant(api, name)
        own = tenant.good("POST", "/v1/node-providers", LAB, status=201)
        listed = tenant.good("GET", "/v1/node-providers?page_size=1")
        rest = tenant.good("GET", f"/v1/node-providers?page_token={listed['next_page_token']}")["items"]
        assert listed["items"] == [own]
        assert [(one["id"], one["shared"], one["spec"]) for one in rest] == [(made["id"], True, {})]
        assert tenant.good("GET", "/v1/node-providers/ours") == rest[0]
        types = [one["name"] for one in tenant.good("GET", "/v1/node-types")["items"]]
        assert types == ["lab.large", "lab.small", "ours.one"]


def test_no_tenant_changes_removes_or_reads_the_document_of_a_shared_one(api, platform):
    made = platform.good("POST", "/v1/node-providers", SHARED, status=201)
    path, tenant = f"/v1/node-providers/{made['id']}", Tenant(api, "seer-3")
    for method, query, body in (
        ("PATCH", "", {"display_name": "x"}),
        ("PATCH", "?dry_run=true", {"display_name": "x"}),
        ("DELETE", "", None),
        ("DELETE", "?dry_run=true", None),
        ("GET", "?form=manifest", None),
    ):
        tenant.problem(403, "Forbidden", method, f"{path}{query}", body, If_Match='"1"')
    changed = platform.good("PATCH", path, {"display_name": "Ours"}, If_Match='"1"')
    assert changed["display_name"] == tenant.good("GET", path)["display_name"] == "Ours"
    assert platform.good("GET", f"{path}?form=manifest")["metadata"]["name"] == "ours"
    actions = [one["action"] for one in platform.good("GET", f"/v1/audit?subject={made['id']}")["items"]]
    assert actions == ["CreateNodeProvider", "ChangeNodeProvider"]
    tried = tenant.good("GET", f"/v1/audit?subject={made['id']}")["items"]
    assert {one["outcome"] for one in tried} == {"Forbidden"}, "a tenant's audit has its own tries alone"


def test_manifests_share_too_and_claims_are_no_business_of_the_platform(platform):
    document = {"apiVersion": "stockyard/v1", "kind": "NodeProvider", "metadata": {"name": "ours"}}
    (result,) = platform.good("POST", "/v1/apply", {**document, "spec": {"simulated": {"nodeTypes": [ONE]}}})["results"]
    assert (result["action"], result["id"].partition("_")[0]) == ("created", "spr")
    claim = "{apiVersion: stockyard/v1, kind: NodeClaim, metadata: {name: c}, spec: {cluster: c}}"
    refused = as_yaml(platform, claim)
    assert (refused.status_code, refused.json()["error_type"]) == (403, "Forbidden")
    for path in ("clusters", "node-claims", "cloud-accounts", "allowed-node-types", "node-environments"):
        platform.problem(403, "Forbidden", "GET", f"/v1/{path}")


def test_two_tenants_share_its_places(api, platform):
    first, second = Waiting(api, "sharer-1"), Waiting(api, "sharer-2")
    second.claim("early", "ours")
    second.until("early", waits_for("ProviderNotFound"))
    made = platform.good("POST", "/v1/node-providers", SHARED, status=201)
    assert second.until("early", available)["type"] == "ours.one"
    first.claim("late", "ours")
    first.until("late", waits_for("NoCapacity"))
    used = platform.problem(409, "InUse", "DELETE", f"/v1/node-providers/{made['id']}")
    assert "early" in used["detail"]
    second.good("DELETE", "node-claims/early")
    assert first.until("late", available)["type"] == "ours.one"
    first.good("DELETE", "node-claims/late")
    first.gone("late")
