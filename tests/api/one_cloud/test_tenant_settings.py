"""Settings of a tenant hold for that tenant alone."""

from __future__ import annotations

ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin")


def test_an_account_sends_the_requests_of_one_tenant_alone(api):
    platform = {"Authorization": f"Bearer {api.token('acme', 'stockyard-platform')}"}

    def put(tenant, version, *accounts, query=""):
        headers = {**platform, "X-Stockyard-Tenant": tenant, "If-Match": f'"{version}"'}
        return api.send("PUT", f"/v1/event-accounts{query}", headers, {"accounts": list(accounts)})

    own, other = "4" * 12, "5" * 12
    first = put("events-1", 0, own)
    assert (first.status_code, first.headers["etag"], first.json()["accounts"]) == (200, '"1"', [own]), first.text
    for query in ("", "?dry_run=true"):
        refusal = put("events-2", 0, other, own, query=query)
        assert (refusal.status_code, [error["pointer"] for error in refusal.json()["errors"]]) == (422, ["/accounts/1"])
        assert "events-1" not in refusal.text
    assert put("events-1", 0, other).status_code == 412
    assert put("events-1", 1, other).json()["accounts"] == [other], "what is no longer listed is free again"
    assert put("events-2", 0, own).status_code == 200
    answer = api.send("GET", "/v1/event-accounts", {"Authorization": f"Bearer {api.token('events-2', *ROLES)}"})
    assert (answer.json()["accounts"], answer.json()["version"]) == ([own], 1)
    audit = api.send("GET", "/v1/audit?subject=event-accounts", {**platform, "X-Stockyard-Tenant": "events-2"})
    done = [record["action"] for record in audit.json()["items"] if record["outcome"] == "done"]
    assert done == ["SetEventAccounts"]


def test_each_tenant_has_a_switch_of_its_own(api):
    first, second = ({"Authorization": f"Bearer {api.token(tenant, *ROLES)}"} for tenant in ("switch-1", "switch-2"))
    answer = api.send("PUT", "/v1/disruption", first, {"paused": True})
    assert (answer.status_code, answer.json()["paused"], answer.json()["version"]) == (200, True, 1), answer.text
    assert api.send("GET", "/v1/disruption", first).json()["paused"] is True
    assert api.send("GET", "/v1/disruption", second).json() == {"paused": False, "updated_at": None, "version": 0}
