"""Tokens of clusters over HTTP: whose role gives which, what is written, and that no log has one."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from functions.clusters import handler
from local.testing.fresh_wiring import fresh_wiring
from stockyard import wiring
from stockyard.domain.records import AuditRecord
from stockyard.edge import paths
from stockyard.operations.listing import every
from stockyard.ports.clusters import ADMIN, OPERATOR, VIEWER
from tests.harness.crash.route_keys import route_key
from tests.harness.worlds.inprocess import Context
from tests.unit.operations.conftest import make_world
from tests.unit.operations.minting import Minting

VIEWERS, OPERATORS, ADMINS, PLATFORMS = (f"stockyard-{name}" for name in ("viewer", "operator", "admin", "platform"))


@pytest.fixture
def minting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Minting]:
    minting = Minting(make_world())

    class Everybody:
        def admit(self, tenant: str) -> None:
            """All may ask."""

    monkeypatch.setattr(wiring, "services", lambda tenant: minting.services if tenant == "acme" else None)
    monkeypatch.setattr(wiring, "store", lambda tenant: minting.services.store if tenant == "acme" else None)
    monkeypatch.setattr(wiring, "_limits", Everybody)
    monkeypatch.setattr("stockyard.edge.origin.check", lambda *_: None)
    monkeypatch.setenv("STOCKYARD_TABLE", "t")
    with fresh_wiring():
        yield minting


def ask(method: str, path: str, *roles: str, query: str = "", tenant: str = "acme") -> tuple[int, Any]:
    claims = {"sub": "1", "preferred_username": "ann", "organization": {tenant: {}}, "realm_access": {"roles": roles}}
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    context: dict[str, Any] = {"requestId": "r", "stage": "$default", "http": {"method": method, "path": path}}
    context["authorizer"] = {"jwt": {"claims": {"sub": "1"}, "scopes": None}}
    event = {
        "version": "2.0",
        "routeKey": route_key(method, path, paths.methods()),
        "rawPath": path,
        "rawQueryString": query,
        "headers": {"authorization": f"Bearer e30.{payload}.sig", "idempotency-key": "one"},
        "requestContext": context,
        "body": None,
        "isBase64Encoded": False,
    }
    answer = handler.lambda_handler(event, Context("clusters", "r"))
    return answer["statusCode"], json.loads(answer["body"])


@pytest.mark.parametrize(
    ("roles", "role"),
    [
        ([VIEWERS], VIEWER),
        ([OPERATORS], OPERATOR),
        ([ADMINS], ADMIN),
        ([PLATFORMS], ADMIN),
        ([VIEWERS, OPERATORS], OPERATOR),
        ([VIEWERS, ADMINS], ADMIN),
    ],
)
def test_the_token_has_the_role_of_whoever_asks(minting: Minting, roles: list[str], role: str) -> None:
    status, body = ask("POST", "/v1/clusters/demo/token", *roles)
    assert (status, body["kind"], body["status"]["token"]) == (200, "ExecCredential", f"token-{role}-1")
    status, body = ask("GET", "/v1/clusters/demo/kubeconfig", *roles, query="form=secret")
    assert (status, body["kind"]) == (200, "Secret")
    config = json.loads(base64.b64decode(body["data"]["kubeconfig"]))
    assert config["users"][0]["user"] == {"token": f"token-{role}-2"}
    assert [asked_role for _, asked_role in minting.driver.mints] == [role, role]


@pytest.mark.parametrize("roles", [[], ["other"]])
def test_nobody_else_gets_one(minting: Minting, roles: list[str]) -> None:
    assert ask("POST", "/v1/clusters/demo/token", *roles)[0] == 403
    assert ask("GET", "/v1/clusters/demo/kubeconfig", *roles, query="form=secret")[0] == 403
    assert minting.driver.mints == []


def test_each_read_is_a_new_token_and_one_audit_record(minting: Minting, capsys: pytest.CaptureFixture[str]) -> None:
    before = len(minting.items())
    answers = [ask("POST", "/v1/clusters/demo/token", VIEWERS)[1]["status"]["token"] for _ in range(3)]
    assert answers == ["token-viewer-1", "token-viewer-2", "token-viewer-3"], "the same key, and yet another token"
    assert ask("GET", "/v1/clusters/demo/kubeconfig", VIEWERS, query="form=secret")[0] == 200
    records = list(every(minting.services.store, AuditRecord))
    assert len(minting.items()) - before == len(records) == 4
    assert {record.subject for record in records} == {minting.cluster.id}
    output = capsys.readouterr()
    for text in (output.out, output.err, *(repr(item) for item in minting.items())):
        assert "token-viewer" not in text


def test_a_plain_kubeconfig_mints_nothing(minting: Minting) -> None:
    status, body = ask("GET", "/v1/clusters/demo/kubeconfig", VIEWERS)
    assert status == 200
    assert json.loads(body["kubeconfig"])["users"][0]["user"]["exec"]["args"] == [
        "token",
        "--cluster",
        minting.cluster.id,
    ]
    assert minting.driver.mints == []


@pytest.mark.parametrize(
    ("query", "status"), [("form=secret&static=true", 422), ("form=other", 422), ("static=true", 404)]
)
def test_other_forms_are_refused(minting: Minting, query: str, status: int) -> None:
    assert ask("GET", "/v1/clusters/demo/kubeconfig", ADMINS, query=query)[0] == status
    assert minting.driver.mints == []


def test_a_cluster_of_people_who_log_in_has_no_tokens(minting: Minting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring, "services", lambda _: minting.world.services)
    for method, path, query in (("POST", "token", ""), ("GET", "kubeconfig", "form=secret")):
        status, body = ask(method, f"/v1/clusters/demo/{path}", ADMINS, query=query)
        assert (status, body["error_type"]) == (409, "IllegalTransition")
