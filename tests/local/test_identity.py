"""What only the Keycloak stand-in has: tokens on demand, approval without a browser, refresh, a clean stop."""

from __future__ import annotations

import base64
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from local.identity import IdentityServer

GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@pytest.fixture
def server() -> Iterator[IdentityServer]:
    server = IdentityServer()
    server.start()
    yield server
    server.stop()


def claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


def post(server: IdentityServer, path: str, **form: str) -> httpx.Response:
    return httpx.post(f"{server.issuer}/protocol/openid-connect/{path}", data=form)


def test_a_token_on_demand(server: IdentityServer):
    before = int(time.time())
    found = claims(server.token("globex", ["stockyard-viewer"], subject="eve", ttl=60))
    assert found["organization"] == {"globex": {}}
    assert found["realm_access"] == {"roles": ["stockyard-viewer"]}
    assert (found["aud"], found["azp"], found["sub"]) == ("stockyard", "stockyard-cli", "eve")
    assert found["iss"] == server.issuer
    assert before + 60 <= found["exp"] <= time.time() + 60


def test_the_command_line_logs_in_without_a_browser_and_refreshes(server: IdentityServer):
    codes = post(server, "auth/device", client_id="stockyard-cli").json()
    form = {"grant_type": GRANT, "client_id": "stockyard-cli", "device_code": codes["device_code"]}
    answer = post(server, "token", **form).json()
    assert claims(answer["access_token"])["organization"] == {"acme": {}}
    assert "stockyard-admin" in claims(answer["access_token"])["realm_access"]["roles"]
    assert post(server, "token", **form).json()["error"] == "invalid_grant"
    refresh = {"grant_type": "refresh_token", "client_id": "stockyard-cli", "refresh_token": answer["refresh_token"]}
    again = post(server, "token", **refresh).json()
    assert claims(again["access_token"])["sub"] == claims(answer["access_token"])["sub"]
    assert again["access_token"] != answer["access_token"]


def test_an_id_token_is_for_the_client_and_comes_with_the_scope_openid(server: IdentityServer):
    codes = post(server, "auth/device", client_id="stockyard-cli", scope="openid organization").json()
    form = {"grant_type": GRANT, "client_id": "stockyard-cli", "device_code": codes["device_code"]}
    answer = post(server, "token", **form).json()
    found, access = claims(answer["id_token"]), claims(answer["access_token"])
    assert (found["aud"], found["typ"]) == ("stockyard-cli", "ID")
    assert found["preferred_username"] == access["preferred_username"]
    assert "realm_access" not in found
    refresh = {"grant_type": "refresh_token", "client_id": "stockyard-cli", "refresh_token": answer["refresh_token"]}
    assert claims(post(server, "token", **refresh).json()["id_token"])["aud"] == "stockyard-cli"
    codes = post(server, "auth/device", client_id="stockyard-cli").json()
    assert "id_token" not in post(server, "token", **{**form, "device_code": codes["device_code"]}).json()
    refused = post(server, "auth/device", client_id="stockyard-cli", scope="openid nonsense")
    assert refused.json()["error"] == "invalid_scope"


def test_without_auto_approval_the_page_approves():
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


def test_an_expired_or_changed_admin_token_is_refused(server: IdentityServer):
    url = server.issuer.replace("/realms/", "/admin/realms/") + "/clients"
    form = {"client_id": server.admin_client_id, "client_secret": server.admin_client_secret}
    good = post(server, "token", grant_type="client_credentials", **form).json()["access_token"]
    other = IdentityServer()
    other.start()
    try:
        foreign = post(
            other,
            "token",
            grant_type="client_credentials",
            client_id=other.admin_client_id,
            client_secret=other.admin_client_secret,
        ).json()["access_token"]
    finally:
        other.stop()
    for token, status in (
        (good, 200),
        (foreign, 401),
        (server.token("acme", ttl=-1), 401),
        (server.token("acme"), 403),
    ):
        assert httpx.get(url, headers={"Authorization": f"Bearer {token}"}).status_code == status


def test_basic_credentials_are_taken(server: IdentityServer):
    answer = httpx.post(
        f"{server.issuer}/protocol/openid-connect/token",
        data={"grant_type": "client_credentials"},
        auth=(server.admin_client_id, server.admin_client_secret),
    )
    assert answer.status_code == 200


def test_stop_frees_the_port_and_may_be_called_twice():
    server = IdentityServer()
    port = int(server.start().rsplit(":", 1)[1])
    server.stop()
    server.stop()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
