"""Programs without a secret log in by a token of another issuer: a job of GitHub, a role of AWS. What the stand-in of
Keycloak takes and refuses, a real one does. The realm trusts both issuers by the keys that they publish."""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from local.identity.federation import ALIAS, ASSERTION, AUTHENTICATOR, SUBJECT, TrustedIssuer
from local.identity.keycloak import KeycloakServer, Unavailable
from local.identity.keys import SigningKey
from local.identity.server import IdentityServer
from stockyard.edge.identity import Roles, caller_of
from stockyard_stack_resources.api import Login
from stockyard_stack_resources.errors import StackResourceError
from stockyard_stack_resources.proofs import by_role
from tests.client.cli.tenant.test_program_logins import ISSUER, SUBJECT_OF_MAIN, URL, GitHub, Program, github
from tests.constructs.test_proofs import AWS, ROLE, Sts

__all__ = ["github"]

pytestmark = pytest.mark.timeout(600)
PROGRAMS = {"infra": ("github", SUBJECT_OF_MAIN), "stacks": ("aws", ROLE)}
"""Clients of the tenant acme: the alias of an issuer, and the subject of its tokens."""


@dataclass
class Realm:
    """A realm with the programs. ``key`` is that of both issuers."""

    issuer: str
    key: SigningKey

    def answer(self, key: SigningKey | None = None, form: dict[str, str] | None = None, **claims: Any) -> str:
        """Answer of the token endpoint to an assertion that differs in these claims: ``taken``, or the refusal."""
        now = int(time.time())
        usual = {"iss": ISSUER, "aud": self.issuer, "sub": SUBJECT_OF_MAIN, "iat": now, "exp": now + 300}
        usual["jti"] = str(uuid.uuid4())
        sent = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        proof = {"client_assertion_type": ASSERTION, "client_assertion": (key or self.key).sign(sent)}
        data = {"grant_type": "client_credentials", **proof, **(form or {})}
        reply = httpx.post(f"{self.issuer}/protocol/openid-connect/token", data=data, timeout=30)
        if reply.status_code == 200:
            return "taken"
        return f"{reply.status_code} {reply.json()['error']}: {reply.json()['error_description']}"


@pytest.fixture(params=["stand-in", pytest.param("keycloak", marks=pytest.mark.keycloak)])
def realm(request: pytest.FixtureRequest, github: tuple[GitHub, dict[str, str]]) -> Iterator[Realm]:
    """The stand-in, then a real Keycloak as the product sets one up."""
    job, variables = github
    url = urlsplit(variables["ACTIONS_ID_TOKEN_REQUEST_URL"])
    if request.param == "keycloak":
        server = request.getfixturevalue("keycloak")
        for alias, issuer in (("github", ISSUER), ("aws", AWS)):
            server.trust(alias, issuer, f"http://{url.netloc}/keys")
        for name, proof in PROGRAMS.items():
            server.add_program(name, "acme", ["stockyard-operator"], proof)
        yield Realm(server.issuer, job.key)
        return
    stand_in = IdentityServer()
    stand_in.start()
    for alias, issuer in (("github", ISSUER), ("aws", AWS)):
        stand_in.realm.federation.issuers.append(TrustedIssuer(alias, issuer, job.key.verified))
    for name, (alias, subject) in PROGRAMS.items():
        attributes = {ALIAS: alias, SUBJECT: subject}
        client = {"clientId": name, "serviceAccountsEnabled": True, "standardFlowEnabled": False}
        stand_in.realm.create({**client, "clientAuthenticatorType": AUTHENTICATOR, "attributes": attributes})
    yield Realm(stand_in.issuer, job.key)
    stand_in.stop()


@pytest.fixture
def keycloak() -> Iterator[KeycloakServer]:
    """A Keycloak of its own."""
    server = KeycloakServer()
    try:
        server.start()
    except Unavailable as reason:
        pytest.skip(f"Keycloak: {reason}")
    yield server
    server.stop()


def claims_of(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return claims


def check_caller(token: str, client: str) -> None:
    """The API knows the program by its token: of this tenant, with this role, and no more."""
    claims = claims_of(token)
    assert "stockyard" in ([claims["aud"]] if isinstance(claims["aud"], str) else claims["aud"])
    checked = {"jwt": {"claims": {"sub": claims["sub"]}, "scopes": None}}
    headers = {"authorization": f"Bearer {token}"}
    caller = caller_of({"headers": headers, "requestContext": {"authorizer": checked}})
    assert (caller.tenant, caller.client_id, caller.roles) == ("acme", client, Roles.OPERATOR)


def test_jobs_and_roles_log_in_and_whatever_else_is_shown_is_refused(
    realm: Realm, github: tuple[GitHub, dict[str, str]], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    is_real = "keycloak" in request.node.callspec.id
    job, variables = github
    program = Program({"STOCKYARD_URL": URL, "STOCKYARD_ISSUER": realm.issuer, "HOME": str(tmp_path), **variables})
    result = program("login", "--github")
    assert (result.exit_code, program.claims["client_id"]) == (0, "infra"), result.output
    assert job.audiences == [realm.issuer]
    token = Login(realm.issuer, by_role(Sts(realm.key), realm.issuer)).token()
    assert claims_of(token)["client_id"] == "stacks"
    if is_real:
        check_caller(program.token or "", "infra")
        check_caller(token, "stacks")
    for sts in (Sts(realm.key, f"{ROLE}-other"), Sts(SigningKey())):
        with pytest.raises(StackResourceError, match="refuses the role of the handler: invalid_client"):
            Login(realm.issuer, by_role(sts, realm.issuer)).token()
    unknown = "401 invalid_client: Invalid client or Invalid client credentials"
    token_id = str(uuid.uuid4())
    attempts: list[tuple[str, dict[str, Any]]] = [
        ("taken", {}),
        ("taken", {"aud": [realm.issuer]}),
        ("taken", {"jti": token_id}),
        ("400 invalid_client: Token reuse detected", {"jti": token_id}),
        ("400 invalid_client: Token jti claim is required", {"jti": None}),
        ("400 invalid_client: Token exp claim is required", {"exp": None}),
        ("400 invalid_client: Token is not active", {"exp": int(time.time()) - 60}),
        ("400 invalid_client: Invalid token audience", {"aud": "https://github.com/acme"}),
        ("400 invalid_client: Multiple audiences not allowed", {"aud": [realm.issuer, "https://github.com/acme"]}),
        ("400 invalid_client: client_id parameter does not match sub claim", {"form": {"client_id": "infra"}}),
        (unknown, {"sub": "repo:acme/infra:pull_request"}),
        (unknown, {"iss": "https://token.actions.example.com"}),
        (unknown, {"key": SigningKey()}),
        (unknown, {"form": {"client_assertion_type": "jwt"}}),
    ]
    assert [realm.answer(**changes) for _, changes in attempts] == [answer for answer, _ in attempts]
