"""``stockyard login`` of programs, against the stand-in of Keycloak: by a client's secret, and by the ID token of a
GitHub workflow, which no secret is needed for."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner, Result

from local.identity.federation import ALIAS, AUTHENTICATOR, SUBJECT, TrustedIssuer
from local.identity.keys import SigningKey
from local.identity.server import IdentityServer
from stockyard_client.cli.app import app
from stockyard_client.cli.context import Context
from stockyard_client.sessions import SessionStore, claims_of

ISSUER = "https://token.actions.githubusercontent.com"
SUBJECT_OF_MAIN = "repo:acme/infra:ref:refs/heads/main"
URL = "https://api.test"


@dataclass
class GitHub:
    """Giver of ID tokens to a job of GitHub Actions: a URL and a token. Its keys stand at ``/keys``."""

    subject: str = SUBJECT_OF_MAIN
    audience: str | None = None
    """In place of the one that is audiences for."""
    lives: int = 300
    key: SigningKey = field(default_factory=SigningKey)
    audiences: list[str] = field(default_factory=list)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        url = urlsplit(handler.path)
        if url.path == "/keys":
            handler.send_response(200)
            handler.end_headers()
            handler.wfile.write(json.dumps(self.key.certificates()).encode())
            return
        query = parse_qs(url.query)
        is_job = handler.headers["Authorization"] == "Bearer job-token"
        self.audiences += query["audience"]
        times = {"iat": int(time.time()), "exp": int(time.time()) + self.lives, "jti": str(uuid.uuid4())}
        audience = self.audience or query["audience"][0]
        value = self.key.sign({"iss": ISSUER, "aud": audience, "sub": self.subject, **times})
        handler.send_response(200 if is_job else 401)
        handler.end_headers()
        handler.wfile.write(json.dumps({"value": value} if is_job else {}).encode())


@pytest.fixture
def github() -> Iterator[tuple[GitHub, dict[str, str]]]:
    job = GitHub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            job.answer(self)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/token?api-version=2.0"
    yield job, {"ACTIONS_ID_TOKEN_REQUEST_URL": url, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "job-token"}
    server.shutdown()
    server.server_close()


@pytest.fixture
def identity(github: tuple[GitHub, dict[str, str]]) -> Iterator[IdentityServer]:
    """A realm that trusts GitHub, with a client for the branch main of a repository and one with a secret."""
    server = IdentityServer()
    server.start()
    service = {"serviceAccountsEnabled": True, "standardFlowEnabled": False}
    proof = {ALIAS: "github", SUBJECT: SUBJECT_OF_MAIN}
    server.realm.federation.issuers.append(TrustedIssuer("github", ISSUER, github[0].key.verified))
    federated = {"clientId": "infra", "clientAuthenticatorType": AUTHENTICATOR, "attributes": proof}
    server.realm.create({**service, **federated})
    server.realm.create({**service, "clientId": "nightly", "secret": "s3cret-of-nightly"})
    yield server
    server.stop()


@dataclass
class Program:
    environment: dict[str, str]
    now: float = field(default_factory=time.time)

    def __call__(self, *arguments: str) -> Result:
        context = Context(environment=self.environment, now=lambda: self.now, terminal=False)
        return CliRunner().invoke(app, list(arguments), obj=context)

    @property
    def token(self) -> str | None:
        session = SessionStore(self.environment).load(URL)
        return session.access_token if session else None

    @property
    def claims(self) -> dict[str, Any]:
        return claims_of(self.token) if self.token else {}


@pytest.fixture
def program(identity: IdentityServer, tmp_path: Any) -> Program:
    return Program({"STOCKYARD_URL": URL, "STOCKYARD_ISSUER": identity.issuer, "HOME": str(tmp_path)})


def test_a_client_logs_in_by_its_secret_and_again_when_its_token_ends(program: Program) -> None:
    result = program("login", "--client-credentials", "--client-id", "nightly")
    assert (result.exit_code, "set STOCKYARD_CLIENT_SECRET" in result.stderr) == (4, True)
    program.environment["STOCKYARD_CLIENT_SECRET"] = "wrong"
    assert program("login", "--client-credentials", "--client-id", "nightly").exit_code == 4
    program.environment["STOCKYARD_CLIENT_SECRET"] = "s3cret-of-nightly"
    result = program("login", "--client-credentials", "--client-id", "nightly")
    assert (result.exit_code, program.claims["client_id"]) == (0, "nightly")
    text = SessionStore(program.environment).path.read_text()
    assert "s3cret-of-nightly" not in text + result.output
    first, program.now = program.claims["jti"], program.now + 290
    context = Context(environment=program.environment, now=lambda: program.now)
    assert claims_of(context.token(URL) or "")["jti"] != first
    assert program("login", "--client-credentials").exit_code == 2


def test_a_workflow_logs_in_by_its_id_token_alone(
    program: Program, github: tuple[GitHub, dict[str, str]], identity: IdentityServer
) -> None:
    job, variables = github
    result = program("login", "--github")
    assert (result.exit_code, "permissions: id-token: write" in result.stderr) == (4, True)
    program.environment.update(variables)
    result = program("login", "--github")
    assert (result.exit_code, program.claims["client_id"]) == (0, "infra"), result.output
    # the token is for the realm alone, so that nobody else who is shown one can use it here
    assert job.audiences == [identity.issuer]
    program.now += 290
    Context(environment=program.environment, now=lambda: program.now).token(URL)
    assert len(job.audiences) == 2
    result = program("login", "--github", "--client-id", "infra")
    assert (result.exit_code, "the subject of the job's token says which client it is" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"subject": "repo:acme/infra:pull_request"},
        {"subject": "repo:other/infra:ref:refs/heads/main"},
        {"audience": "https://github.com/acme"},
        {"lives": -1},
        {"key": SigningKey()},
    ],
)
def test_another_jobs_token_proves_nothing(
    program: Program, github: tuple[GitHub, dict[str, str]], changes: dict[str, Any]
) -> None:
    job, variables = github
    program.environment.update(variables)
    for name, value in changes.items():
        setattr(job, name, value)
    result = program("login", "--github")
    assert (result.exit_code, program.claims) == (4, {})
    words = ("Invalid client or Invalid client credentials", "Invalid token audience", "Token is not active")
    assert any(text in result.stderr for text in words)
