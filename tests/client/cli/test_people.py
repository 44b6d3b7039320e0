"""``stockyard login``, ``token`` and ``version``."""

from __future__ import annotations

import base64
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

CLIENT = Path(__file__).parents[3] / "client"
ISSUER = "https://id.test/realms/stockyard"


def jwt(**claims: Any) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{payload}.sig"


TOKENS = "/realms/stockyard/token"
FIRST, SECOND = jwt(aud="stockyard-cli", n=1), jwt(aud="stockyard-cli", n=2)


@pytest.fixture
def realm(api):
    base = "/realms/stockyard"
    metadata = {
        "issuer": ISSUER,
        "device_authorization_endpoint": f"{ISSUER}/device",
        "token_endpoint": f"{ISSUER}/token",
    }
    api.answer("GET", f"{base}/.well-known/openid-configuration", metadata)
    started = {"device_code": "dev-secret", "user_code": "ABCD", "verification_uri_complete": f"{ISSUER}/go?c=ABCD"}
    api.answer("POST", f"{base}/device", started)
    return api


@pytest.fixture
def issuer(realm):
    first = {"access_token": "access-1", "refresh_token": "refresh-1", "expires_in": 300, "id_token": FIRST}
    realm.answer("POST", TOKENS, first)
    return realm.answer("POST", TOKENS, {"access_token": "access-2", "expires_in": 300, "id_token": SECOND})


def test_login_is_kept_used_and_refreshed(cli, issuer, clock):
    cli.environment.pop("STOCKYARD_TOKEN")
    result = cli("login", "--issuer", ISSUER)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    assert f"{ISSUER}/go?c=ABCD" in result.stderr
    for hidden in ("access-1", "refresh-1", "dev-secret"):
        assert hidden not in result.output
    issuer.answer("GET", "/v1/clusters", {"items": []})
    cli.environment.pop("STOCKYARD_URL")  # the login remembers it
    cli("cluster", "list")
    assert issuer.requests[-1].headers["Authorization"] == "Bearer access-1"
    clock.time += 290
    cli("cluster", "list")
    cli("cluster", "list")
    assert [request.headers.get("Authorization") for request in issuer.requests[-3:]] == [
        None,
        "Bearer access-2",
        "Bearer access-2",
    ]


def test_refreshing_a_token_does_not_change_the_api_that_is_called_without_a_name(cli, issuer, clock):
    cli.environment.pop("STOCKYARD_TOKEN")
    cli("login", "--issuer", ISSUER)
    clock.time += 290
    cli("--url", "https://last.test", "login", "--issuer", ISSUER)
    cli.environment.pop("STOCKYARD_URL")
    issuer.answer("GET", "/v1/clusters", {"items": []})
    assert cli("--url", "https://api.test", "cluster", "list").exit_code == 0
    cli("cluster", "list")
    assert issuer.requests[-1].url.host == "last.test"


def test_kept_token_goes_to_no_other_api(cli, issuer):
    cli.environment.pop("STOCKYARD_TOKEN")
    cli("login", "--issuer", ISSUER)
    issuer.answer("GET", "/v1/clusters", {"items": []})
    cli("--url", "https://other.test", "cluster", "list")
    assert "Authorization" not in issuer.requests[-1].headers


def test_login_without_an_issuer_is_a_usage_error(cli):
    assert cli("login").exit_code == 2


def test_refused_login_is_not_allowed(cli, api):
    result = cli("login", "--issuer", ISSUER)
    assert result.exit_code == 4
    assert "no OIDC issuer answers" in result.stderr


def test_clusters_are_shown_the_id_token_which_is_refreshed(cli, issuer, clock):
    cli("login", "--issuer", ISSUER)
    assert json.loads(cli("token").stdout)["status"] == {"token": FIRST}
    clock.time += 290
    assert json.loads(cli("token").stdout)["status"] == {"token": SECOND}


def test_a_session_is_refreshed_before_the_id_token_ends(cli, realm, clock):
    ends = jwt(exp=int(clock.time) + 100)
    answers = {"access_token": "a", "refresh_token": "r", "expires_in": 300, "id_token": ends}
    realm.answer("POST", TOKENS, answers).answer("POST", TOKENS, {**answers, "id_token": SECOND})
    cli("login", "--issuer", ISSUER)
    assert json.loads(cli("token").stdout)["status"]["token"] == ends
    clock.time += 80
    assert json.loads(cli("token").stdout)["status"]["token"] == SECOND


def test_the_apis_token_is_never_shown_to_a_cluster(cli):
    cli.environment["STOCKYARD_TOKEN"] = jwt(aud="stockyard")
    result = cli("token")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "STOCKYARD_CLUSTER_TOKEN" in result.stderr


def test_a_login_without_an_id_token_says_what_is_missing(cli, realm):
    realm.answer("POST", TOKENS, {"access_token": "a", "expires_in": 300})
    cli("login", "--issuer", ISSUER)
    result = cli("token")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "openid" in result.stderr


def test_token_is_an_exec_credential(cli):
    token = jwt(exp=1767225600)
    cli.environment["STOCKYARD_CLUSTER_TOKEN"] = token
    credential = json.loads(cli("token").stdout)
    assert credential["kind"] == "ExecCredential"
    assert credential["apiVersion"] == "client.authentication.k8s.io/v1"
    assert credential["status"] == {"token": token, "expirationTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize("token", ["opaque", "a.b.c", "e30.W10.x", jwt(exp="never")])
def test_token_without_expiry_has_none(cli, token):
    cli.environment["STOCKYARD_CLUSTER_TOKEN"] = token
    assert json.loads(cli("token").stdout)["status"] == {"token": token}


def test_token_of_nobody_is_not_allowed(cli):
    cli.environment.pop("STOCKYARD_TOKEN")
    result = cli("token")
    assert (result.exit_code, result.stdout) == (4, "")


def test_version_is_that_of_the_package(cli):
    version = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]["version"]
    assert cli("version").stdout == f"stockyard {version}\n"
    assert json.loads(cli("version", "-o", "json").stdout)["version"] == version
