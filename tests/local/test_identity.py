"""Features that only the Keycloak stand-in has: tokens on demand, approval without a browser, refresh, a clean stop."""

from __future__ import annotations

import base64
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from local.identity.realm import organization_id
from local.identity.server import IdentityServer

GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@pytest.fixture
def server() -> Iterator[IdentityServer]:
    server = IdentityServer()
    server.start()
    yield server
    server.stop()


def claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    payload: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return payload


def post(server: IdentityServer, path: str, **form: str) -> httpx.Response:
    return httpx.post(f"{server.issuer}/protocol/openid-connect/{path}", data=form)


def test_token_has_requested_claims(server: IdentityServer):
    before = int(time.time())
    token_claims = claims(server.token("globex", ["stockyard-viewer"], subject="eve", ttl=60))
    assert token_claims["organization"] == {"globex": {"id": organization_id("globex")}}
    assert token_claims["realm_access"] == {"roles": ["stockyard-viewer"]}
    assert (token_claims["aud"], token_claims["azp"], token_claims["sub"]) == ("stockyard", "stockyard-cli", "eve")
    assert token_claims["iss"] == server.issuer
    assert before + 60 <= token_claims["exp"] <= time.time() + 60


def test_command_line_logs_in_without_browser_and_refreshes(server: IdentityServer):
    codes = post(server, "auth/device", client_id="stockyard-cli").json()
    form = {"grant_type": GRANT, "client_id": "stockyard-cli", "device_code": codes["device_code"]}
    answer = post(server, "token", **form).json()
    assert claims(answer["access_token"])["organization"] == {"acme": {"id": organization_id("acme")}}
    assert "stockyard-admin" in claims(answer["access_token"])["realm_access"]["roles"]
    assert post(server, "token", **form).json()["error"] == "invalid_grant"
    refresh = {"grant_type": "refresh_token", "client_id": "stockyard-cli", "refresh_token": answer["refresh_token"]}
    again = post(server, "token", **refresh).json()
    assert claims(again["access_token"])["sub"] == claims(answer["access_token"])["sub"]
    assert again["access_token"] != answer["access_token"]


def test_id_token_has_client_audience_and_requires_openid_scope(server: IdentityServer):
    codes = post(server, "auth/device", client_id="stockyard-cli", scope="openid organization").json()
    form = {"grant_type": GRANT, "client_id": "stockyard-cli", "device_code": codes["device_code"]}
    answer = post(server, "token", **form).json()
    id_claims, access = claims(answer["id_token"]), claims(answer["access_token"])
    assert (id_claims["aud"], id_claims["typ"]) == ("stockyard-cli", "ID")
    assert id_claims["preferred_username"] == access["preferred_username"]
    assert "realm_access" not in id_claims
    refresh = {"grant_type": "refresh_token", "client_id": "stockyard-cli", "refresh_token": answer["refresh_token"]}
    assert claims(post(server, "token", **refresh).json()["id_token"])["aud"] == "stockyard-cli"
    codes = post(server, "auth/device", client_id="stockyard-cli").json()
    assert "id_token" not in post(server, "token", **{**form, "device_code": codes["device_code"]}).json()
    refused = post(server, "auth/device", client_id="stockyard-cli", scope="openid nonsense")
    assert refused.json()["error"] == "invalid_scope"


def test_device_login_is_approved_on_page():
    server = IdentityServer(auto_approve=False)
    server.start()
    try:
        codes = post(server, "auth/device", client_id="stockyard-cli").json()
        form = {"grant_type": GRANT, "client_id": "stockyard-cli", "device_code": codes["device_code"]}
        assert post(server, "token", **form).json()["error"] == "authorization_pending"
        wrong = codes["verification_uri"] + "?user_code=AAAA-AAAA"
        assert httpx.get(wrong).status_code == 400
        assert post(server, "token", **form).json()["error"] == "authorization_pending"
        assert httpx.get(codes["verification_uri_complete"]).status_code == 200
        assert post(server, "token", **form).status_code == 200
    finally:
        server.stop()


def test_admin_api_refuses_expired_or_changed_token(server: IdentityServer):
    url = server.issuer.replace("/realms/", "/admin/realms/") + "/clients"
    form = {"client_id": server.admin_client_id, "client_secret": server.admin_client_secret}
    good = post(server, "token", grant_type="client_credentials", **form).json()["access_token"]
    other_server = IdentityServer()
    other_server.start()
    try:
        foreign = post(
            other_server,
            "token",
            grant_type="client_credentials",
            client_id=other_server.admin_client_id,
            client_secret=other_server.admin_client_secret,
        ).json()["access_token"]
    finally:
        other_server.stop()
    for token, status in (
        (good, 200),
        (foreign, 401),
        (server.token("acme", ttl=-1), 401),
        (server.token("acme"), 403),
    ):
        assert httpx.get(url, headers={"Authorization": f"Bearer {token}"}).status_code == status


def test_token_endpoint_accepts_basic_credentials(server: IdentityServer):
    answer = httpx.post(
        f"{server.issuer}/protocol/openid-connect/token",
        data={"grant_type": "client_credentials"},
        auth=(server.admin_client_id, server.admin_client_secret),
    )
    assert answer.status_code == 200


def test_stop_frees_port_and_is_idempotent():
    server = IdentityServer()
    port = int(server.start().rsplit(":", 1)[1])
    server.stop()
    server.stop()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
