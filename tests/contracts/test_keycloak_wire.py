"""The stand-in answers as a real Keycloak 26 does: status codes, bodies, claims. Every test runs on both."""

from __future__ import annotations

import base64
import json
import uuid

import httpx
import pytest

from local.identity.server import IdentityServer

SECRET = "s" * 24


def fresh() -> str:
    return f"my-k8s-{uuid.uuid4().hex[:12]}"


def test_token_response_has_keycloak_form(door):
    answer = door.token(door.server.admin_client_id, door.server.admin_client_secret)
    assert answer.status_code == 200
    body = answer.json()
    assert door.claims(body.pop("access_token"))["resource_access"]["realm-management"] == {"roles": ["manage-clients"]}
    assert set(body.pop("scope").split()) == {"email", "profile"}
    # a second may begin between the making of a token and its answer
    assert body.pop("expires_in") in (299, 300)
    assert body == {"refresh_expires_in": 0, "token_type": "Bearer", "not-before-policy": 0}
    response = door.token(door.server.admin_client_id, door.server.admin_client_secret, scope="openid").json()
    assert set(response["scope"].split()) == {"openid", "email", "profile"}
    assert set(door.claims(response["access_token"])["scope"].split()) == {"openid", "email", "profile"}


def test_unknown_scope_is_refused(door):
    answer = door.token(door.server.admin_client_id, door.server.admin_client_secret, scope="nonsense")
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "invalid_scope", "error_description": "Invalid scopes: nonsense"},
    )


@pytest.mark.parametrize(
    ("form", "status", "error", "description"),
    [
        ({"client_secret": "x"}, 401, "unauthorized_client", "Invalid client or Invalid client credentials"),
        ({"client_secret": ""}, 401, "unauthorized_client", "Invalid client or Invalid client credentials"),
        ({"client_id": "nobody"}, 401, "invalid_client", "Invalid client or Invalid client credentials"),
        ({"grant_type": ""}, 400, "invalid_request", "Missing form parameter: grant_type"),
        ({"grant_type": "zzz"}, 400, "unsupported_grant_type", "Unsupported grant_type"),
        ({"grant_type": "refresh_token", "refresh_token": "abc"}, 400, "invalid_grant", "Invalid refresh token"),
    ],
)
def test_token_refusals(door, form: dict[str, str], status: int, error: str, description: str):
    form = dict(form)  # the parameters are shared with the other implementation
    credentials = {"client_id": door.server.admin_client_id, "secret": door.server.admin_client_secret}
    if "client_id" in form:
        credentials["client_id"] = form.pop("client_id")
    if "client_secret" in form:
        credentials["secret"] = form.pop("client_secret")
    answer = door.token(**credentials, **form)
    assert answer.status_code == status
    assert answer.json() == {"error": error, "error_description": description}


def test_client_without_service_account_gets_no_token(door):
    name = fresh()
    door.admin("POST", "", {"clientId": name, "secret": SECRET})
    answer = door.token(name, SECRET)
    assert answer.status_code == 401
    assert answer.json()["error_description"] == "Client not enabled to retrieve service account"


def test_create_find_update_delete_answers(door):
    name = fresh()
    response = door.admin("POST", "", {"clientId": name, "secret": SECRET, "attributes": {"stockyard.a": "1"}})
    assert (response.status_code, response.content) == (201, b"")
    key = response.headers["Location"].rsplit("/", 1)[1]
    assert response.headers["Location"] == f"{door.clients}/{key}"
    again = door.admin("POST", "", {"clientId": name})
    assert (again.status_code, again.json()) == (409, {"errorMessage": f"Client {name} already exists"})
    clients = door.admin("GET", f"?clientId={name}").json()
    assert [(client["id"], client["clientId"], client["secret"]) for client in clients] == [(key, name, SECRET)]
    assert door.admin("GET", f"/{key}/client-secret").json() == {"type": "secret", "value": SECRET}
    updated = door.admin("PUT", f"/{key}", {"clientId": name, "secret": "t" * 24})
    assert (updated.status_code, updated.content) == (204, b"")
    client = door.admin("GET", f"/{key}").json()
    assert (client["secret"], client["attributes"]["stockyard.a"]) == ("t" * 24, "1")
    renewed = door.admin("POST", f"/{key}/client-secret").json()
    assert renewed["type"] == "secret"
    assert len(renewed["value"]) == 32
    assert door.admin("DELETE", f"/{key}").status_code == 204
    response = door.admin("DELETE", f"/{key}")
    assert (response.status_code, response.json()) == (404, {"error": "Could not find client"})


@pytest.mark.parametrize(
    ("method", "path"), [("GET", ""), ("PUT", ""), ("GET", "/client-secret"), ("GET", "/service-account-user")]
)
def test_missing_client_is_404(door, method: str, path: str):
    body = {"clientId": "x"} if method == "PUT" else None
    answer = door.admin(method, f"/00000000-0000-0000-0000-000000000000{path}", body)
    assert (answer.status_code, answer.json()) == (404, {"error": "Could not find client"})


def test_service_account_user(door):
    name = fresh()
    client = door.adapter().create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    user = door.admin("GET", f"/{client.uuid}/service-account-user").json()
    assert user["username"] == f"service-account-{name}"
    assert door.claims(door.token(name, SECRET).json()["access_token"])["sub"] == user["id"]


def test_admin_api_requires_token_with_role(door):
    name = fresh()
    door.adapter().create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    weak = door.token(name, SECRET).json()["access_token"]
    for headers, status, error in (
        ({}, 401, "HTTP 401 Unauthorized"),
        ({"Authorization": "Bearer x"}, 401, "HTTP 401 Unauthorized"),
        ({"Authorization": f"Bearer {weak}"}, 403, "HTTP 403 Forbidden"),
    ):
        answer = httpx.get(door.clients, headers=headers, timeout=30)
        assert (answer.status_code, answer.json()) == (status, {"error": error})


def test_malformed_json_body_is_refused(door):
    token = door.token(door.server.admin_client_id, door.server.admin_client_secret).json()["access_token"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    answer = httpx.post(door.clients, content=b"{", headers=headers, timeout=30)
    assert answer.status_code == 400
    assert answer.json() == {"error": "invalid_request", "error_description": "Cannot parse the JSON"}


def test_discovery_and_keys(door):
    document = httpx.get(f"{door.server.issuer}/.well-known/openid-configuration", timeout=30).json()
    assert document["issuer"] == door.server.issuer
    token = door.token(door.server.admin_client_id, door.server.admin_client_secret).json()["access_token"]
    header = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))
    keys = httpx.get(document["jwks_uri"], timeout=30).json()["keys"]
    signing = [key for key in keys if key["kid"] == header["kid"]]
    assert len(signing) == 1
    assert (signing[0]["alg"], signing[0]["use"], signing[0]["kty"]) == ("RS256", "sig", "RSA")
    assert _verified(token, signing[0])
    head, _, signature = token.rpartition(".")
    assert not _verified(f"{head[:-2]}AA.{signature}", signing[0])


def _verified(token: str, key: dict[str, str]) -> bool:
    from joserfc import jws
    from joserfc.errors import JoseError
    from joserfc.jwk import RSAKey

    try:
        jws.deserialize_compact(token, RSAKey.import_key({name: key[name] for name in ("kty", "n", "e")}), ["RS256"])
    except (JoseError, ValueError):
        return False
    return True


def test_unknown_realms_and_paths_are_404(door):
    base = door.server.issuer.removesuffix("/realms/stockyard")
    realm = httpx.get(f"{base}/realms/nowhere/.well-known/openid-configuration", timeout=30)
    assert (realm.status_code, realm.json()) == (404, {"error": "Realm does not exist"})
    path = httpx.get(f"{base}/nowhere", timeout=30)
    assert (path.status_code, path.json()) == (404, {"error": "Unable to find matching target resource method"})


def test_device_flow_waits_for_a_person(door, monkeypatch):
    name = fresh()
    flag = {"oauth2.device.authorization.grant.enabled": "true"}
    door.admin("POST", "", {"clientId": name, "publicClient": True, "attributes": flag})
    if isinstance(door.server, IdentityServer):
        monkeypatch.setattr(door.server.realm, "auto_approve", False)
    codes = door.post("auth/device", {"client_id": name}).json()
    assert set(codes) == {
        "device_code",
        "user_code",
        "verification_uri",
        "verification_uri_complete",
        "expires_in",
        "interval",
    }
    assert codes["verification_uri"] == f"{door.server.issuer}/device"
    assert codes["verification_uri_complete"] == f"{door.server.issuer}/device?user_code={codes['user_code']}"
    grant = "urn:ietf:params:oauth:grant-type:device_code"
    pending = door.post("token", {"grant_type": grant, "client_id": name, "device_code": codes["device_code"]})
    assert pending.status_code == 400
    assert pending.json() == {
        "error": "authorization_pending",
        "error_description": "The authorization request is still pending",
    }
    wrong = door.post("token", {"grant_type": grant, "client_id": name, "device_code": "zz"})
    assert (wrong.status_code, wrong.json()["error"]) == (400, "invalid_grant")
    refused = door.post(
        "auth/device",
        {"client_id": door.server.admin_client_id, "client_secret": door.server.admin_client_secret},
    )
    assert (refused.status_code, refused.json()["error"]) == (400, "unauthorized_client")
