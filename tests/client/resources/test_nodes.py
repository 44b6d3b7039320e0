"""Nodes through the SDK: paths, queries, ETags."""

from __future__ import annotations

PROVIDER = {"id": "npr_01", "name": "sim", "kind": "simulated", "phase": "Available", "version": 3}
CLAIM = {"id": "ncl_01", "name": "one", "phase": "Pending", "operation_id": "op_01", "version": 2}


def test_update_sends_if_match_of_version_read(api, client):
    api.answer("GET", "/v1/node-providers/sim", PROVIDER, ETag='"3"')
    api.answer("PATCH", "/v1/node-providers/npr_01", {**PROVIDER, "version": 4}, ETag='"4"')
    api.answer("PATCH", "/v1/node-claims/ncl_01", {**CLAIM, "version": 3})
    api.answer("GET", "/v1/node-claims/one", CLAIM, ETag='"2"')
    assert client.node_providers.update("sim", {"display_name": "S"}).etag == '"4"'
    assert client.node_claims.update("one", {"labels": None}).version == 3
    sent = [(request.method, request.headers.get("If-Match")) for request in api.requests]
    assert sent == [("GET", None), ("PATCH", '"3"'), ("GET", None), ("PATCH", '"2"')]


def test_manifests_types_and_power(api, client):
    api.answer("GET", "/v1/node-providers/sim", {"kind": "NodeProvider"})
    api.answer("GET", "/v1/node-claims/one", {"kind": "NodeClaim"})
    api.answer("GET", "/v1/node-types/sim.small", {"id": "ntp_01", "name": "sim.small", "version": 1})
    api.answer("POST", "/v1/node-claims/one/power", {**CLAIM, "power": "Off"}, status=202)
    assert client.node_providers.manifest("sim") == {"kind": "NodeProvider"}
    assert client.node_claims.manifest("one") == {"kind": "NodeClaim"}
    assert [dict(request.url.params) for request in api.requests] == [{"form": "manifest"}] * 2
    assert client.node_types.get("sim.small").name == "sim.small"
    assert client.node_claims.power("one", "Off").power == "Off"
    assert api.bodies("POST") == [{"state": "Off"}]


def test_apply_retries_with_same_idempotency_key(api, client):
    api.problem("POST", "/v1/apply", 503, "StoreUnavailable", retryable=True)
    api.answer("POST", "/v1/apply", {"results": [{"kind": "NodeClaim", "name": "a", "id": "n", "action": "changed"}]})
    assert [result.action for result in client.manifests.apply([{"kind": "NodeClaim"}])] == ["changed"]
    assert len({request.headers["Idempotency-Key"] for request in api.requests}) == 1
    assert len(api.requests) == 2


def test_what_is_there_can_be_refused(api, client):
    api.answer("POST", "/v1/apply", {"results": []})
    client.manifests.apply([{}], create_only=True)
    api.answer("POST", "/v1/apply", {"plan": {}})
    client.manifests.plan([{}], create_only=True)
    assert [dict(request.url.params) for request in api.requests] == [
        {"create_only": "true"},
        {"dry_run": "true", "create_only": "true"},
    ]


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
    assert {request.url.params["dry_run"] for request in api.requests} == {"true"}
