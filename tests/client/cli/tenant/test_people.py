"""``stockyard login``, ``token`` and ``version``."""

from __future__ import annotations

import base64
import json
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

CLIENT = Path(__file__).parents[4] / "client"
ISSUER = "https://id.test/realms/stockyard"


def jwt(**claims: Any) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{payload}.sig"


TOKENS = "/realms/stockyard/token"
FIRST, SECOND = jwt(aud="demo-1-login", n=1), jwt(aud="demo-1-login", n=2)
TOKEN = ("token", "--issuer", ISSUER, "--client-id", "demo-1-login")


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


@pytest.fixture
def kubectl(cli):
    """Runs the command as kubectl does, with somebody at the terminal."""
    cli.environment["KUBERNETES_EXEC_INFO"] = json.dumps({"spec": {"interactive": True}})
    return cli


def test_who_sits_there_is_asked_to_log_in_to_each_cluster_once(kubectl, issuer, clock):
    """An ID token is for the client that asked for it, so a cluster's people log in with the cluster's own client."""
    first = kubectl(*TOKEN)
    assert json.loads(first.stdout)["status"] == {"token": FIRST}
    assert f"{ISSUER}/go?c=ABCD" in first.stderr
    forms = [dict(parse_qsl(request.content.decode())) for request in issuer.requests if request.method == "POST"]
    assert {form["client_id"] for form in forms} == {"demo-1-login"}
    assert json.loads(kubectl(*TOKEN).stdout)["status"] == {"token": FIRST}
    clock.time += 290
    again = kubectl(*TOKEN)
    assert (json.loads(again.stdout)["status"], again.stderr) == ({"token": SECOND}, "")
    # Another cluster's is another login, and the API's is none of them.
    logins = sum(request.url.path.endswith("/device") for request in issuer.requests)
    kubectl("token", "--issuer", ISSUER, "--client-id", "other-2-login")
    assert sum(request.url.path.endswith("/device") for request in issuer.requests) == logins + 1


def test_a_login_to_a_cluster_is_no_login_to_the_api(kubectl, issuer):
    kubectl.environment.pop("STOCKYARD_TOKEN")
    kubectl(*TOKEN)
    issuer.answer("GET", "/v1/clusters", {"items": []})
    kubectl("cluster", "list")
    assert "Authorization" not in issuer.requests[-1].headers


def test_login_to_a_cluster_by_its_name(cli, issuer):
    arguments = list(TOKEN)
    users = [{"name": "demo", "user": {"exec": {"command": "stockyard", "args": arguments}}}]
    document = {"clusters": [{"name": "demo", "cluster": {"server": "https://demo:6443"}}], "users": users}
    issuer.answer("GET", "/v1/clusters/demo/kubeconfig", document)
    result = cli("login", "--cluster", "demo")
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    assert json.loads(cli(*TOKEN).stdout)["status"] == {"token": FIRST}
    issuer.answer("GET", "/v1/clusters/odd/kubeconfig", {**document, "users": [{"name": "demo", "user": {}}]})
    assert "how people log in" in cli("login", "--cluster", "odd").stderr


def test_a_session_that_has_ended_is_begun_anew_where_somebody_sits(kubectl, realm, clock):
    realm.answer("POST", TOKENS, {"access_token": "a", "expires_in": 300, "id_token": FIRST})
    realm.answer("POST", TOKENS, {"access_token": "b", "expires_in": 300, "id_token": SECOND})
    kubectl(*TOKEN)
    clock.time += 400
    assert json.loads(kubectl(*TOKEN).stdout)["status"]["token"] == SECOND
    kubectl.environment["KUBERNETES_EXEC_INFO"] = json.dumps({"spec": {"interactive": False}})
    clock.time += 400
    result = kubectl(*TOKEN)
    assert (result.exit_code, result.stdout) == (4, "")
    assert "stockyard login --cluster" in result.stderr


def test_a_session_is_refreshed_before_the_id_token_ends(kubectl, realm, clock):
    ends = jwt(exp=int(clock.time) + 100)
    answers = {"access_token": "a", "refresh_token": "r", "expires_in": 300, "id_token": ends}
    realm.answer("POST", TOKENS, answers).answer("POST", TOKENS, {**answers, "id_token": SECOND})
    assert json.loads(kubectl(*TOKEN).stdout)["status"]["token"] == ends
    clock.time += 80
    assert json.loads(kubectl(*TOKEN).stdout)["status"]["token"] == SECOND


def test_the_apis_token_is_never_shown_to_a_cluster(cli, issuer):
    cli.environment["STOCKYARD_TOKEN"] = jwt(aud="stockyard")
    cli("login", "--issuer", ISSUER)
    result = cli(*TOKEN)
    assert (result.exit_code, result.stdout) == (4, "")
    assert "STOCKYARD_CLUSTER_TOKEN" in result.stderr


def test_a_login_without_an_id_token_says_what_is_missing(kubectl, realm):
    realm.answer("POST", TOKENS, {"access_token": "a", "expires_in": 300})
    result = kubectl(*TOKEN)
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
    result = cli(*TOKEN)
    assert (result.exit_code, result.stdout) == (4, "")
    assert cli("token").exit_code == 2, "of which cluster?"


def test_version_is_that_of_the_package(cli):
    version = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]["version"]
    assert cli("version").stdout == f"stockyard {version}\n"
    assert json.loads(cli("version", "-o", "json").stdout)["version"] == version


CREDENTIAL = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "kind": "ExecCredential",
    "status": {"token": "k8s-aws-v1.abc", "expirationTimestamp": "2026-01-02T03:04:05Z"},
}


def test_the_api_makes_tokens_for_a_cluster_that_its_cloud_admits_people_to(cli, api):
    api.answer("POST", "/v1/clusters/clu_01/token", CREDENTIAL)
    cli.environment["STOCKYARD_CLUSTER_TOKEN"] = "a token for other clusters"
    for _ in range(2):
        result = cli("token", "--cluster", "clu_01")
        assert (result.exit_code, json.loads(result.stdout), result.stderr) == (0, CREDENTIAL, "")
    assert [request.url.path for request in api.requests] == ["/v1/clusters/clu_01/token"] * 2, "nothing is kept"


@pytest.mark.parametrize(
    "answer", [{}, {"kind": "ExecCredential"}, {**CREDENTIAL, "status": {"token": ""}}, {**CREDENTIAL, "kind": "Other"}]
)
def test_an_answer_without_a_token_is_no_credential(cli, api, answer):
    api.answer("POST", "/v1/clusters/clu_01/token", answer)
    result = cli("token", "--cluster", "clu_01")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no token" in result.stderr


def test_a_credential_holds_nothing_but_the_token(cli, api):
    status = {**CREDENTIAL["status"], "clientCertificateData": "x", "clientKeyData": "y"}
    api.answer("POST", "/v1/clusters/clu_01/token", {**CREDENTIAL, "status": status, "spec": {"interactive": True}})
    assert json.loads(cli("token", "--cluster", "clu_01").stdout) == CREDENTIAL


def test_a_token_is_for_a_cluster_or_for_a_login(cli):
    assert cli("token", "--cluster", "clu_01", "--issuer", ISSUER).exit_code == 2
    assert cli("token", "--cluster", "clu_01", "--client-id", "demo-1-login").exit_code == 2


def test_a_refusal_of_a_token_is_said(cli, api):
    api.answer("POST", "/v1/clusters/clu_01/token", {"error_type": "Forbidden", "detail": "Needs a role."}, status=403)
    result = cli("token", "--cluster", "clu_01")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "Needs a role." in result.stderr


def test_such_a_cluster_needs_no_login(cli, api):
    users = [{"name": "demo", "user": {"exec": {"command": "stockyard", "args": ["token", "--cluster", "clu_01"]}}}]
    document = {"clusters": [{"name": "demo", "cluster": {"server": "https://demo"}}], "users": users}
    api.answer("GET", "/v1/clusters/demo/kubeconfig", document)
    result = cli("login", "--cluster", "demo")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "needs no login" in result.stderr
    assert len(api.requests) == 1
