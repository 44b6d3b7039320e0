"""Nodes through the SDK: paths, queries, ETags."""

from __future__ import annotations

PROVIDER = {"id": "npr_01", "name": "sim", "kind": "simulated", "phase": "Available", "version": 3}
CLAIM = {"id": "ncl_01", "name": "one", "phase": "Pending", "operation_id": "op_01", "version": 2}


def test_changes_are_guarded_by_the_version_that_was_read(api, client):
    api.answer("GET", "/v1/node-providers/sim", PROVIDER, ETag='"3"')
    api.answer("PATCH", "/v1/node-providers/npr_01", {**PROVIDER, "version": 4}, ETag='"4"')
    api.answer("PATCH", "/v1/node-claims/ncl_01", {**CLAIM, "version": 3})
    api.answer("GET", "/v1/node-claims/one", CLAIM, ETag='"2"')
    assert client.node_providers.update("sim", {"display_name": "S"}).etag == '"4"'
    assert client.node_claims.update("one", {"labels": None}).version == 3
    sent = [(one.method, one.headers.get("If-Match")) for one in api.requests]
    assert sent == [("GET", None), ("PATCH", '"3"'), ("GET", None), ("PATCH", '"2"')]


def test_manifests_types_and_power(api, client):
    api.answer("GET", "/v1/node-providers/sim", {"kind": "NodeProvider"})
    api.answer("GET", "/v1/node-claims/one", {"kind": "NodeClaim"})
    api.answer("GET", "/v1/node-types/sim.small", {"id": "ntp_01", "name": "sim.small", "version": 1})
    api.answer("POST", "/v1/node-claims/one/power", {**CLAIM, "power": "Off"}, status=202)
    assert client.node_providers.manifest("sim") == {"kind": "NodeProvider"}
    assert client.node_claims.manifest("one") == {"kind": "NodeClaim"}
    assert [dict(one.url.params) for one in api.requests] == [{"form": "manifest"}] * 2
    assert client.node_types.get("sim.small").name == "sim.small"
    assert client.node_claims.power("one", "Off").power == "Off"
    assert api.bodies("POST") == [{"state": "Off"}]


def test_an_apply_is_repeated_under_one_key(api, client):
    api.problem("POST", "/v1/apply", 503, "StoreUnavailable", retryable=True)
    api.answer("POST", "/v1/apply", {"results": [{"kind": "NodeClaim", "name": "a", "id": "n", "action": "changed"}]})
    assert [one.action for one in client.manifests.apply([{"kind": "NodeClaim"}])] == ["changed"]
    assert len({one.headers["Idempotency-Key"] for one in api.requests}) == 1
    assert len(api.requests) == 2


def test_plans(api, client):
    for method, path in (
        ("POST", "/v1/apply"),
        ("DELETE", "/v1/node-claims/one"),
        ("DELETE", "/v1/node-providers/sim"),
    ):
        api.answer(method, path, {"plan": {"deletes": ["x"]}})
    assert client.manifests.plan([{}]).deletes == ("x",)
    assert client.node_claims.plan_delete("one").deletes == ("x",)
    assert client.node_providers.plan_delete("sim").deletes == ("x",)
    assert {one.url.params["dry_run"] for one in api.requests} == {"true"}
