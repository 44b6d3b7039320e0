"""Needs of Stockyard and its machines in a Vault, on the simulated one and on a real one where it was built."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from local.vault.server import Vault, VaultServer, app_role, ask
from stockyard.errors import CredentialsRevoked, PermissionDenied, VendorRefused
from stockyard.providers.clouds.cudo.vault import Vault as AccountVault
from stockyard.providers.clouds.cudo.vault import VaultClient
from tests.harness.worlds import vaults

KEY = "secret/data/stockyard/acme-0123456789ab"


@pytest.fixture(scope="module", params=vaults.KINDS)
def vault(request: pytest.FixtureRequest) -> Iterator[Vault]:
    with vaults.running(request.param) as vault:
        yield vault


@pytest.fixture
def role(vault: Vault) -> tuple[str, str]:
    return app_role(vault)


@pytest.fixture
def client(vault: Vault, role: tuple[str, str]) -> VaultClient:
    return client_of(vault, *role)


@pytest.fixture
def token(vault: Vault, role: tuple[str, str]) -> str:
    return login(vault, *role)[1]["auth"]["client_token"]


def client_of(vault: Vault, role_id: str, secret_id: str) -> VaultClient:
    return VaultClient(AccountVault("https://vault.example.test", role_id, secret_id), url=vault.url)


def login(vault: Vault, role_id: str, secret_id: str) -> tuple[int, Any]:
    body = {"role_id": role_id, "secret_id": secret_id}
    return ask(vault, "POST", "auth/approle/login", body, token="")


def unwrap(vault: Vault, wrapping_token: str) -> tuple[int, Any]:
    return ask(vault, "POST", "sys/wrapping/unwrap", {}, token=wrapping_token)


def test_a_login_tells_the_name_of_the_role(vault: Vault, role: tuple[str, str]) -> None:
    status, answer = login(vault, *role)
    assert status == 200
    assert answer["auth"]["metadata"] == {"role_name": "stockyard"}


def test_a_machines_secret_id_is_unwrapped_once_and_lets_it_in(
    vault: Vault, role: tuple[str, str], client: VaultClient
) -> None:
    wrapping_token = client.wrapped_secret_id("acme-0123456789ab")
    status, answer = unwrap(vault, wrapping_token)
    assert status == 200
    assert (answer["data"]["secret_id_ttl"], answer["data"]["secret_id_num_uses"]) == (0, 0)
    secret_id = answer["data"]["secret_id"]
    assert secret_id not in (role[1], wrapping_token)
    assert login(vault, role[0], secret_id)[0] == 200
    assert login(vault, role[0], secret_id)[0] == 200, "it may come again after a restart"
    assert unwrap(vault, wrapping_token)[0] == 400


def test_a_wrapping_token_that_nobody_made_is_refused(vault: Vault) -> None:
    assert unwrap(vault, "hvs.nobody")[0] == 400


def test_check_leaves_nothing_that_lasts(vault: Vault, client: VaultClient) -> None:
    client.check()
    if isinstance(vault, VaultServer):
        last = list(vault.vault.secret_ids.values())[-1]
        assert last.ends_at is not None


@pytest.mark.parametrize("wrong", ["role_id", "secret_id"])
def test_an_approle_that_is_none_is_refused_by_name(vault: Vault, role: tuple[str, str], wrong: str) -> None:
    role_id, secret_id = role
    client = client_of(
        vault, "nobody" if wrong == "role_id" else role_id, "nothing" if wrong == "secret_id" else secret_id
    )
    for call in (client.check, lambda: client.wrapped_secret_id("x"), lambda: client.forget_key("x")):
        with pytest.raises(CredentialsRevoked, match="role id or the secret id"):
            call()


def test_a_secret_id_that_was_destroyed_lets_nobody_in(vault: Vault, role: tuple[str, str]) -> None:
    assert login(vault, *role)[0] == 200
    ask(vault, "POST", "auth/approle/role/stockyard/secret-id/destroy", {"secret_id": role[1]})
    with pytest.raises(CredentialsRevoked):
        client_of(vault, *role).check()


def test_a_role_without_the_policy_is_told_so(vault: Vault) -> None:
    other = client_of(vault, *app_role(vault, "other"))
    for call in (other.check, lambda: other.wrapped_secret_id("x")):
        with pytest.raises(PermissionDenied, match="may not make secret ids"):
            call()
    ask(vault, "POST", "auth/approle/role/other", {"token_policies": "default"})
    with pytest.raises(PermissionDenied, match="may not delete keys"):
        other.forget_key("acme-0123456789ab")


@pytest.fixture
def limited(vault: Vault, request: pytest.FixtureRequest) -> Iterator[VaultClient]:
    """A client whose role limits secret ids by this name."""
    yield client_of(vault, *app_role(vault, **{request.param: 3600}))
    app_role(vault, **{request.param: 0})


@pytest.mark.parametrize("limited", ["secret_id_ttl", "secret_id_num_uses"], indirect=True)
def test_a_role_whose_secret_ids_end_is_refused_by_name(limited: VaultClient) -> None:
    """Otherwise the machine would not get in again one day."""
    with pytest.raises(VendorRefused, match="lasts as long as the machine") as refusal:
        limited.wrapped_secret_id("x")
    assert "secret_id_ttl" in refusal.value.hint


@pytest.mark.parametrize("limited", ["secret_id_num_uses"], indirect=True)
def test_a_check_finds_a_role_whose_secret_ids_are_used_up(limited: VaultClient) -> None:
    with pytest.raises(VendorRefused, match="lasts as long as the machine"):
        limited.check()


def test_of_two_keys_that_are_written_at_once_one_stays(vault: Vault, token: str) -> None:
    assert ask(vault, "GET", KEY, token=token)[0] == 404
    first = {"options": {"cas": 0}, "data": {"key": "first"}}
    assert ask(vault, "POST", KEY, first, token=token)[0] == 200
    assert ask(vault, "POST", KEY, {**first, "data": {"key": "second"}}, token=token)[0] == 400
    assert ask(vault, "GET", KEY, token=token)[1]["data"]["data"] == {"key": "first"}
    assert ask(vault, "DELETE", KEY, token=token)[0] == 204


def test_a_key_that_was_deleted_is_not_made_again_until_it_is_forgotten(
    vault: Vault, token: str, client: VaultClient
) -> None:
    name = "acme-deleted"
    path = f"secret/data/stockyard/{name}"
    write = {"options": {"cas": 0}, "data": {"key": "first"}}
    assert ask(vault, "POST", path, write, token=token)[0] == 200
    assert ask(vault, "DELETE", path, token=token)[0] == 204
    assert ask(vault, "GET", path, token=token)[0] == 404
    assert ask(vault, "POST", path, write, token=token)[0] == 400
    client.forget_key(name)
    assert ask(vault, "GET", path, token=token)[0] == 404
    assert ask(vault, "POST", path, write, token=token)[0] == 200
    client.forget_key(name)
    client.forget_key(name)


@pytest.mark.parametrize("token", ["", "hvs.nobody"])
def test_without_a_token_nothing_is_told(vault: Vault, token: str) -> None:
    for method, path in (
        ("GET", KEY),
        ("POST", KEY),
        ("DELETE", "secret/metadata/stockyard/a"),
        ("POST", "auth/approle/role/stockyard/secret-id"),
    ):
        status, answer = ask(vault, method, path, {"data": {}} if method == "POST" else None, token=token)
        assert status == 403
        assert "permission denied" in json.dumps(answer)
