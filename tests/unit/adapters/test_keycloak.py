"""Logins, new attempts and error texts of the Keycloak adapter. The port itself: ``tests/contracts``."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import requests
import stamina

from local.identity.server import IdentityServer
from stockyard.adapters.keycloak import Keycloak
from stockyard.errors import VendorRefused, VendorTimeout, VendorUnavailable

CANARY = "canary-secret-value-000001"


@pytest.fixture
def server() -> Iterator[IdentityServer]:
    server = IdentityServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def without_waits() -> Iterator[None]:
    with stamina.set_testing(True, attempts=3):
        yield


class Reader:
    """Counts how often the admin secret is read."""

    def __init__(self, text: str) -> None:
        self.text, self.reads = text, 0

    def __call__(self, name: str) -> str:
        assert name == "stage/identity-admin"
        self.reads += 1
        return self.text


def reader(server: IdentityServer) -> Reader:
    credentials = {"client_id": server.admin_client_id, "client_secret": server.admin_client_secret}
    return Reader(json.dumps(credentials))


def keycloak(server: IdentityServer, read: Reader, now: list[float] | None = None) -> Keycloak:
    moment = now if now is not None else [0.0]
    return Keycloak(
        server.issuer,
        "stockyard",
        installation="inst-1",
        read_secret=read,
        admin_secret="stage/identity-admin",
        clock=lambda: moment[0],
    )


@pytest.mark.parametrize("issuer", ["", "https://id.example.com", "https://id.example.com/realms/"])
def test_an_issuer_must_name_a_realm(issuer: str):
    with pytest.raises(ValueError, match="realm"):
        Keycloak(issuer, "stockyard", installation="inst-1", read_secret=str, admin_secret="x")


def test_an_installation_is_needed():
    with pytest.raises(ValueError, match="installation"):
        Keycloak("https://id/realms/s", "stockyard", installation="", read_secret=str, admin_secret="x")


def test_one_login_serves_until_the_token_is_old(server: IdentityServer):
    read, now = reader(server), [0.0]
    identity = keycloak(server, read, now)
    for _ in range(3):
        identity.find_client("x")
    assert read.reads == 1
    now[0] = 239.0
    identity.find_client("x")
    assert read.reads == 1
    now[0] = 241.0
    identity.find_client("x")
    assert read.reads == 2


def test_a_token_that_is_no_longer_taken_is_renewed(server: IdentityServer):
    read = reader(server)
    identity = keycloak(server, read)
    identity.find_client("x")
    restarted = IdentityServer()
    port = int(server.issuer.split(":")[2].split("/")[0])
    server.stop()
    restarted.realm.clients.clear()
    restarted.realm.create(
        {"clientId": server.admin_client_id, "secret": server.admin_client_secret, "serviceAccountsEnabled": True}
    )
    restarted.start(port)
    try:
        assert identity.find_client("x") is None
        assert read.reads == 2
    finally:
        restarted.stop()


def test_the_service_token_is_kept_until_shortly_before_it_expires(server: IdentityServer):
    now = [0.0]
    identity = keycloak(server, reader(server), now)
    first = identity.service_token()
    now[0] = 269.0
    assert identity.service_token() == first
    now[0] = 271.0
    assert identity.service_token() != first


def test_a_server_that_is_away_is_unavailable(server: IdentityServer):
    read = reader(server)
    identity = keycloak(server, read)
    server.stop()
    with pytest.raises(VendorUnavailable):
        identity.find_client("x")
    assert read.reads == 3


def test_a_lost_answer_to_create_is_found_again(server: IdentityServer, monkeypatch: pytest.MonkeyPatch):
    identity = keycloak(server, reader(server))
    send = requests.Session.send
    lost: list[int] = []

    def losing(session: requests.Session, request: requests.PreparedRequest, **extra: object) -> requests.Response:
        answer = send(session, request, **extra)
        if request.method == "POST" and str(request.url).endswith("/clients") and not lost:
            lost.append(answer.status_code)
            raise requests.ReadTimeout("slow")
        return answer

    monkeypatch.setattr(requests.Session, "send", losing)
    client = identity.create_client(client_id="c", owner="clu_1", tenant="acme", secret="s" * 24)
    assert lost == [201]
    assert identity.find_client("c") == client


def test_no_answer_in_time_is_a_timeout(server: IdentityServer, monkeypatch: pytest.MonkeyPatch):
    identity = keycloak(server, reader(server))
    identity.find_client("x")
    tries = []

    def slow(*_: object, **__: object) -> requests.Response:
        tries.append(1)
        raise requests.ReadTimeout("slow")

    monkeypatch.setattr(requests.Session, "send", slow)
    with pytest.raises(VendorTimeout):
        identity.create_client(client_id="c", owner="clu_1", tenant="acme", secret=CANARY)
    assert len(tries) == 3


@pytest.mark.parametrize("text", [CANARY, json.dumps([CANARY]), json.dumps({"client_id": CANARY})])
def test_a_wrong_admin_secret_is_never_quoted(server: IdentityServer, text: str):
    with pytest.raises(VendorRefused) as caught:
        keycloak(server, Reader(text)).find_client("x")
    error: BaseException | None = caught.value
    while error is not None:
        assert CANARY not in repr(error)
        error = error.__cause__
    assert "client_secret" in caught.value.hint
