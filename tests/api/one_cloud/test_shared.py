"""Node providers that the platform shares with all tenants, over the served API. Each test removes what it shares."""

from __future__ import annotations

import pytest

from .test_nodes import LAB, Tenant, as_yaml
from .test_waking import Tenant as Waiting
from .test_waking import available, waits_for

LIMITED_TYPE = {"name": "one", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1, "maxCapacity": 1}
SHARED = {"name": "ours", "kind": "simulated", "spec": {"nodeTypes": [LIMITED_TYPE]}}


@pytest.fixture
def platform(api):
    """The calls of the platform itself. What it shares is deleted at the end of the test."""
    calls = Tenant(api, "platform", "stockyard-platform")
    calls.headers["X-Stockyard-Tenant"] = "_platform"
    yield calls
    for provider in calls.good("GET", "/v1/node-providers")["items"]:
        calls.good("DELETE", f"/v1/node-providers/{provider['id']}", status=202)


def test_shared_providers_are_listed_for_every_tenant(api, platform):
    plan = platform.good("POST", "/v1/node-providers?dry_run=true", SHARED)["plan"]
    assert [creation["name"] for creation in plan["creates"]] == ["ours", "ours.one"]
    first = platform.call("POST", "/v1/node-providers", SHARED, Idempotency_Key="share")
    again = platform.call("POST", "/v1/node-providers", SHARED, Idempotency_Key="share")
    assert (first.status_code, again.content) == (201, first.content), first.text
    provider = first.json()
    assert (provider["shared"], provider["spec"]["nodeTypes"][0]["name"]) == (True, "one")
    platform.problem(409, "InUse", "POST", "/v1/node-providers", SHARED)
    for name in ("seer-1", "seer-2"):
        tenant = Tenant(api, name)
        own = tenant.good("POST", "/v1/node-providers", LAB, status=201)
        listed = tenant.good("GET", "/v1/node-providers?page_size=1")
        second_page = tenant.good("GET", f"/v1/node-providers?page_token={listed['next_page_token']}")["items"]
        assert listed["items"] == [own]
        assert [(item["id"], item["shared"], item["spec"]) for item in second_page] == [(provider["id"], True, {})]
        assert tenant.good("GET", "/v1/node-providers/ours") == second_page[0]
        types = [node_type["name"] for node_type in tenant.good("GET", "/v1/node-types")["items"]]
        assert types == ["lab.large", "lab.small", "ours.one"]


def test_shared_providers_cannot_be_changed_deleted_or_read_in_full_by_tenants(api, platform):
    provider = platform.good("POST", "/v1/node-providers", SHARED, status=201)
    path, tenant = f"/v1/node-providers/{provider['id']}", Tenant(api, "seer-3")
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
    actions = [record["action"] for record in platform.good("GET", f"/v1/audit?subject={provider['id']}")["items"]]
    assert actions == ["CreateNodeProvider", "ChangeNodeProvider"]
    tried = tenant.good("GET", f"/v1/audit?subject={provider['id']}")["items"]
    assert {record["outcome"] for record in tried} == {"Forbidden"}, "a tenant's audit holds only its own attempts"


def test_the_platform_applies_shared_providers_but_no_claims(platform):
    document = {"apiVersion": "stockyard/v1", "kind": "NodeProvider", "metadata": {"name": "ours"}}
    (result,) = platform.good("POST", "/v1/apply", {**document, "spec": {"simulated": {"nodeTypes": [LIMITED_TYPE]}}})[
        "results"
    ]
    assert (result["action"], result["id"].partition("_")[0]) == ("created", "spr")
    claim = "{apiVersion: stockyard/v1, kind: NodeClaim, metadata: {name: c}, spec: {cluster: c}}"
    refused = as_yaml(platform, claim)
    assert (refused.status_code, refused.json()["error_type"]) == (403, "Forbidden")
    for path in ("clusters", "node-claims", "cloud-accounts", "allowed-node-types", "node-environments"):
        platform.problem(403, "Forbidden", "GET", f"/v1/{path}")


def test_capacity_of_a_shared_type_is_shared_by_two_tenants(api, platform):
    first, second = Waiting(api, "sharer-1"), Waiting(api, "sharer-2")
    second.claim("early", "ours")
    second.until("early", waits_for("ProviderNotFound"))
    provider = platform.good("POST", "/v1/node-providers", SHARED, status=201)
    assert second.until("early", available)["type"] == "ours.one"
    first.claim("late", "ours")
    first.until("late", waits_for("NoCapacity"))
    used = platform.problem(409, "InUse", "DELETE", f"/v1/node-providers/{provider['id']}")
    assert "early" in used["detail"]
    second.good("DELETE", "node-claims/early")
    assert first.until("late", available)["type"] == "ours.one"
    first.good("DELETE", "node-claims/late")
    first.wait_until_gone("late")
