"""``stockyard whoami`` and ``logout``."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest
import yaml

from stockyard_client.sessions import Session, SessionStore

ISSUER = "https://id.test/realms/stockyard"
DISCOVERY = "/realms/stockyard/.well-known/openid-configuration"
CLAIMS = {
    "preferred_username": "ann",
    "organization": {"acme": {"id": "o1"}},
    "realm_access": {"roles": ["stockyard-admin", "stockyard-viewer", "offline_access"]},
    "azp": "stockyard-cli",
    "iss": ISSUER,
    "exp": 3600,
}


def jwt(**claims: Any) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{payload}.c2ln"


@pytest.fixture
def login(cli):
    """Keeps a login for the API, in place of the environment's token."""
    cli.environment.pop("STOCKYARD_TOKEN", None)
    store = SessionStore(cli.environment)
    token = jwt(**CLAIMS)
    for url in ("https://api.test", "https://other.test"):
        store.save(Session(url, ISSUER, "stockyard-cli", f"{ISSUER}/token", token, "refresh-1", 3600.0))
    return store


def test_whoami_shows_who_and_until_when(cli):
    token = cli.environment["STOCKYARD_TOKEN"] = jwt(**CLAIMS)
    result = cli("whoami")
    assert result.exit_code == 0, result.stderr
    assert [line.split(None, 1) for line in result.stdout.splitlines()] == [
        ["API", "https://api.test"],
        ["User", "ann"],
        ["Tenant", "acme"],
        ["Roles", "admin, viewer"],
        ["Client", "stockyard-cli"],
        ["Issuer", ISSUER],
        ["Token", "STOCKYARD_TOKEN, until 1970-01-01T01:00:00Z"],
    ]
    assert token not in result.output
    assert cli("whoami", "-o", "name").stdout == "ann\n"


def test_whoami_of_a_login_and_of_the_platform_for_a_tenant(cli, login, api):
    document = yaml.safe_load(cli("--tenant", "globex", "whoami", "-o", "yaml").stdout)
    assert (document["tenant"], document["token"]) == ("globex", "the token of the last login")
    assert document["roles"] == ["admin", "viewer"]
    assert api.requests == []


@pytest.mark.parametrize("organization", ["acme", ["acme"]])
def test_whoami_reads_each_form_of_an_organization(cli, organization):
    cli.environment["STOCKYARD_TOKEN"] = jwt(sub="s1", organization=organization)
    document = json.loads(cli("whoami", "-o", "json").stdout)
    assert (document["user"], document["tenant"], document["roles"]) == ("s1", "acme", [])
    assert document["expires_at"] is None


def test_whoami_of_nobody_and_of_an_old_token(cli):
    cli.environment["STOCKYARD_TOKEN"] = jwt(**CLAIMS | {"exp": -1})
    result = cli("whoami")
    assert (result.exit_code, "The token has expired" in result.stderr) == (4, True)
    for token in ("opaque", "a.b.c", ""):
        cli.environment["STOCKYARD_TOKEN"] = token
        result = cli("whoami")
        assert (result.exit_code, result.stdout) == (4, "")


def test_logout_forgets_and_ends_the_login(cli, login, api):
    api.answer("GET", DISCOVERY, {"revocation_endpoint": f"{ISSUER}/revoke"})
    api.answer("POST", "/realms/stockyard/revoke", {})
    result = cli("logout")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "The login to https://api.test is forgotten and ended at the issuer." in result.stderr
    form = dict(parse_qsl(api.requests[-1].content.decode()))
    assert form == {"token": "refresh-1", "token_type_hint": "refresh_token", "client_id": "stockyard-cli"}
    assert (login.load("https://api.test"), login.current_url()) == (None, "https://other.test")
    assert "There was no login to forget." in cli("logout").stderr


@pytest.mark.parametrize("fault", [httpx.ConnectError("x"), None])
def test_logout_forgets_where_the_issuer_cannot_be_told(cli, login, api, fault):
    if fault:
        api.fault("GET", DISCOVERY, fault)
    else:
        api.answer("GET", DISCOVERY, {"issuer": ISSUER})
    result = cli("logout", "--all")
    assert result.exit_code == 0
    assert result.stderr.count("the issuer was not told") == 2
    assert (login.urls(), login.current_url()) == ([], None)


def test_logout_says_that_the_environment_still_has_a_token(cli):
    assert "STOCKYARD_TOKEN is still set, and wins: unset it." in cli("logout").stderr
