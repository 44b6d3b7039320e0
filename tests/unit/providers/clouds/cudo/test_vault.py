"""Asking a tenant's Vault: what its answers mean, which hosts are called, and what nobody gets to see."""

from __future__ import annotations

import gzip
import json
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import pytest

from local.vault.server import app_role, ask
from stockyard.errors import (
    CredentialsRevoked,
    PermissionDenied,
    VendorError,
    VendorNotFound,
    VendorRefused,
    VendorThrottled,
    VendorTimeout,
    VendorUnavailable,
)
from stockyard.providers.addresses import Guard
from stockyard.providers.clouds.cudo.vault import MOST_BYTES, WRAP_SECONDS, Vault, VaultClient
from tests.harness.worlds import vaults

ADDRESS = "https://vault.example.test:8200/teams"
SECRET_ID, TOKEN, WRAPPING_TOKEN = "the-secret-id-of-the-account", "hvs.token-of-a-login", "hvs.wrapping-token"
PUBLIC = ("192.0.2.10",)
LOGIN = {"auth": {"client_token": TOKEN, "metadata": {"role_name": "stockyard"}}}
WRAPPED = {"wrap_info": {"token": WRAPPING_TOKEN, "ttl": 1800}}
Answer = Callable[[httpx.Request], httpx.Response]


class Host:
    """Host that gives the next of ``answers``, or answers as a Vault that has no objection."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.requests: list[httpx.Request] = []
        self.answers = list(answers)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return answer
        path = request.url.path
        if path.endswith("/login"):
            return httpx.Response(200, json=LOGIN)
        return httpx.Response(200, json=WRAPPED) if path.endswith("/secret-id") else httpx.Response(204)


def client_of(
    host: Host, addresses: Sequence[str] = PUBLIC, address: str = ADDRESS, *, allow_private: bool = False
) -> VaultClient:
    vault, transport = Vault(address, "role-1", SECRET_ID), httpx.MockTransport(host)
    guard = Guard(allow_private, resolve=lambda _name, _port: addresses)
    return VaultClient(vault, transport, guard=guard)


# --- what is asked ---------------------------------------------------------------------------------------------------


def test_a_secret_id_is_asked_for_wrapped_and_without_an_end() -> None:
    host = Host()
    assert client_of(host).wrapped_secret_id("acme-0123456789ab") == WRAPPING_TOKEN
    login, secret_id = host.requests
    assert json.loads(login.content) == {"role_id": "role-1", "secret_id": SECRET_ID}
    assert "X-Vault-Token" not in login.headers
    assert secret_id.method == "POST"
    assert secret_id.url.path == "/teams/v1/auth/approle/role/stockyard/secret-id"
    assert secret_id.headers["X-Vault-Token"] == TOKEN
    assert secret_id.headers["X-Vault-Wrap-TTL"] == str(WRAP_SECONDS) == "1800"
    body = json.loads(secret_id.content)
    assert json.loads(body["metadata"]) == {"cluster": "acme-0123456789ab"}
    assert (body["num_uses"], body["ttl"]) == (0, 0)


def test_a_key_is_forgotten_with_all_its_versions_also_when_it_is_gone() -> None:
    host = Host(httpx.Response(200, json=LOGIN), httpx.Response(404, json={"errors": []}))
    client_of(host).forget_key("acme-0123456789ab")
    assert host.requests[-1].method == "DELETE"
    assert host.requests[-1].url.path == "/teams/v1/secret/metadata/stockyard/acme-0123456789ab"


def test_machines_are_told_the_address_of_the_account_or_where_the_operator_asks() -> None:
    vault = Vault(ADDRESS, "role-1", SECRET_ID)
    assert VaultClient(vault).address == ADDRESS
    assert VaultClient(vault, url="http://127.0.0.1:1/").address == "http://127.0.0.1:1"


# --- which hosts are called ------------------------------------------------------------------------------------------


def test_what_is_called_is_the_address_that_was_looked_at_by_the_hosts_own_name() -> None:
    """A name that leads elsewhere the next moment changes nothing."""
    host = Host()
    client_of(host, ["2001:db8::5"]).check()
    for request in host.requests:
        assert request.url.host == "2001:db8::5"
        assert request.url.port == 8200
        assert request.headers["Host"] == "vault.example.test:8200"
        assert request.extensions["sni_hostname"] == "vault.example.test"


def test_an_address_that_the_guard_refuses_is_not_called() -> None:
    host = Host()
    client = client_of(host, ["192.0.2.10", "169.254.169.254"])
    for call in (client.check, lambda: client.wrapped_secret_id("x"), lambda: client.forget_key("x")):
        with pytest.raises(VendorRefused, match="nobody outside may choose"):
            call()
    with pytest.raises(VendorRefused, match="this stage calls none"):
        client_of(host, ["10.0.0.1"]).check()
    assert host.requests == []
    client_of(host, ["10.0.0.1"], allow_private=True).check()
    assert len(host.requests) == 2


@pytest.mark.parametrize("name", ["a..test", f"{'a' * 64}.test", "xn--a"])
def test_a_name_that_is_none_leads_nowhere(name: str) -> None:
    client = VaultClient(Vault(f"https://{name}", "r", SECRET_ID), httpx.MockTransport(Host()))
    with pytest.raises((VendorUnavailable, VendorRefused), match=r"leads to no address|is no URL"):
        client.check()


def test_a_vault_that_cannot_be_reached_at_any_address() -> None:
    host = Host(*(httpx.ConnectError("refused") for _ in range(9)))
    with pytest.raises(VendorUnavailable, match="cannot be reached"):
        client_of(host, ["192.0.2.1", "192.0.2.2"]).check()
    assert len(host.requests) == 2


def test_a_redirection_is_not_followed() -> None:
    host = Host(httpx.Response(307, headers={"Location": "http://169.254.169.254/"}))
    with pytest.raises(VendorRefused, match="307"):
        client_of(host).check()
    assert len(host.requests) == 1


# --- what answers mean -----------------------------------------------------------------------------------------------

AT_LOGIN: list[tuple[Any, type[VendorError], str]] = [
    (400, CredentialsRevoked, "role id or the secret id"),
    (403, CredentialsRevoked, "refuses the login"),
    (404, VendorNotFound, "auth/approle"),
    (408, VendorTimeout, "in time"),
    (412, VendorUnavailable, "up to date"),
    (418, VendorRefused, "418"),
    (429, VendorThrottled, "too often"),
    (500, VendorUnavailable, "cannot answer now"),
    (503, VendorUnavailable, "sealed"),
    (httpx.ReadTimeout("t"), VendorTimeout, "in time"),
    (httpx.ConnectTimeout("t"), VendorUnavailable, "cannot be reached"),
    (httpx.ReadError("r"), VendorUnavailable, "cannot be reached"),
    (b"<html>", VendorUnavailable, "no JSON"),
    (b"[]", VendorUnavailable, "no JSON object"),
    (b"{}", VendorUnavailable, "names no token"),
    (b'{"auth": {"client_token": "t", "metadata": {"role_name": "../../sys"}}}', VendorUnavailable, "names no token"),
    (b'{"auth": {"client_token": "t", "metadata": {"role_name": "a/b"}}}', VendorUnavailable, "names no token"),
    (b"x" * (MOST_BYTES + 1), VendorUnavailable, "too long"),
    ("gzip", VendorUnavailable, "compressed"),
]


def answer_of(reply: Any) -> httpx.Response | Exception:
    if reply == "gzip":
        return httpx.Response(200, headers={"Content-Encoding": "gzip"}, content=gzip.compress(b" " * 10_000_000))
    if isinstance(reply, Exception):
        return reply
    if isinstance(reply, bytes):
        return httpx.Response(200, content=reply)
    return httpx.Response(reply, json={"errors": [f"{SECRET_ID} {TOKEN}"]})


@pytest.mark.parametrize(("reply", "kind", "text"), AT_LOGIN)
def test_answers_to_a_login(reply: Any, kind: type[VendorError], text: str) -> None:
    with pytest.raises(kind, match=text) as error:
        client_of(Host(answer_of(reply))).check()
    assert type(error.value) is kind
    text_of_error = (
        "".join(traceback.format_exception(error.value)) + error.value.detail + error.value.hint + error.value.code
    )
    assert SECRET_ID not in text_of_error
    assert TOKEN not in text_of_error


@pytest.mark.parametrize(
    ("reply", "kind", "text"),
    [
        (400, VendorRefused, "lasts as long as the machine"),
        (403, PermissionDenied, "its own role"),
        (404, VendorNotFound, "no AppRole"),
        (503, VendorUnavailable, "sealed"),
        (b'{"data": {"secret_id": "not wrapped"}}', VendorUnavailable, "not wrapped"),
    ],
)
def test_answers_to_a_request_for_a_secret_id(reply: Any, kind: type[VendorError], text: str) -> None:
    with pytest.raises(kind, match=text) as error:
        client_of(Host(httpx.Response(200, json=LOGIN), answer_of(reply))).wrapped_secret_id("x")
    assert type(error.value) is kind


@pytest.mark.parametrize(("status", "kind"), [(403, PermissionDenied), (400, VendorRefused), (500, VendorUnavailable)])
def test_answers_to_a_deletion(status: int, kind: type[VendorError]) -> None:
    with pytest.raises(kind):
        client_of(Host(httpx.Response(200, json=LOGIN), answer_of(status))).forget_key("x")


def test_no_secret_is_in_a_repr() -> None:
    vault = Vault(ADDRESS, "role-1", SECRET_ID)
    assert SECRET_ID not in repr(vault) + repr(VaultClient(vault))


def test_a_machines_secret_id_that_nobody_unwraps_in_time_is_lost() -> None:
    moment = [0.0]
    with vaults.running("simulated") as server:
        simulated = server.vault  # type: ignore[attr-defined]
        simulated._now = lambda: moment[0]
        vault = Vault(ADDRESS, *app_role(server))
        tokens = [VaultClient(vault, url=server.url).wrapped_secret_id("x") for _ in range(2)]
        moment[0] = WRAP_SECONDS - 1
        assert ask(server, "POST", "sys/wrapping/unwrap", {}, token=tokens[0])[0] == 200
        moment[0] = WRAP_SECONDS
        assert ask(server, "POST", "sys/wrapping/unwrap", {}, token=tokens[1])[0] == 400
