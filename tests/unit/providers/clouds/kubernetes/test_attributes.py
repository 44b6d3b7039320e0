"""Attributes of a Kubernetes host: one way in, and nothing that was sealed for one server goes to another."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.cloud_accounts import CloudAccountCreate, CloudAccountPatch
from stockyard.errors import InvalidInput
from tests.harness.worlds.kubernetes_host import SERVER, authority_b64, kubernetes_account
from tests.unit.providers.kubernetes.test_client import certificate

TOKEN = "token-of-the-service-account"
GOOD = {"server": SERVER, "certificate_authority": authority_b64(), "namespaces": ["machines"], "token": TOKEN}
HALF = base64.b64encode(b"-----BEGIN EC PRIVATE KEY-----\nQQ==\n").decode()
NO_PEM = base64.b64encode(b"no certificate").decode()


def created(**changes: Any) -> CloudAccountCreate:
    attributes = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    return read(CloudAccountCreate, {"provider": "kubernetes", "name": "host", "attributes": attributes})


def pointers(call: Any, *arguments: Any, **named: Any) -> set[str]:
    with pytest.raises(InvalidInput) as refused:
        call(*arguments, **named)
    assert TOKEN not in str(refused.value.errors)
    return {problem.pointer.removeprefix("/attributes") for problem in refused.value.errors}


def test_each_way_in_alone() -> None:
    account = created()
    assert account.secret_attributes() == {"token": TOKEN}
    assert account.public_attributes() == {
        name: value for name, value in {**GOOD, "features": ["base"]}.items() if name != "token"
    }
    user = certificate()
    account = created(token=None, client_certificate=user.certificate_b64, client_key=user.key_b64)
    assert account.secret_attributes() == {"client_key": user.key_b64}
    assert TOKEN not in repr(created())
    account = created(token=None, server=None, certificate_authority=None, via="basement")
    assert (account.secret_attributes(), account.public_attributes()["via"]) == ({}, "basement")


@pytest.mark.parametrize(
    ("changed", "faults"),
    [
        ({"token": None}, {"/token"}),
        ({"via": "basement"}, {"/via"}),
        ({"token": None, "via": "basement"}, {"/server", "/certificate_authority"}),
        ({"client_key": certificate().key_b64}, {"/client_key", "/client_certificate"}),
        ({"token": None, "client_key": certificate().key_b64}, {"/client_certificate"}),
        ({"client_certificate": certificate().certificate_b64}, {"/client_key"}),
        ({"server": None}, {"/server"}),
        ({"certificate_authority": None}, {"/certificate_authority"}),
        ({"server": "http://host.example.test"}, {"/server"}),
        ({"server": "https://user@host.example.test"}, {"/server"}),
        ({"server": "https://host.example.test/?x"}, {"/server"}),
        ({"server": "https://host.example.test:0"}, {"/server"}),
        ({"server": "https://host.example.test:99999"}, {"/server"}),
        ({"server": "https:///x"}, {"/server"}),
        ({"certificate_authority": "?"}, {"/certificate_authority"}),
        ({"certificate_authority": NO_PEM}, {"/certificate_authority"}),
        ({"token": "short"}, {"/token"}),
        ({"token": "with a space in it"}, {"/token"}),
        ({"token": None, "client_certificate": NO_PEM, "client_key": NO_PEM}, {"/client_certificate", "/client_key"}),
        ({"token": None, "client_certificate": certificate().certificate_b64, "client_key": HALF}, {"/client_key"}),
        ({"namespaces": []}, {"/namespaces"}),
        ({"namespaces": ["a", "a"]}, {"/namespaces/1"}),
        ({"namespaces": ["No"]}, {"/namespaces/0"}),
        ({"namespaces": [f"n{number}" for number in range(21)]}, {"/namespaces"}),
        ({"features": ["everything"]}, {"/features/0"}),
        ({"features": []}, {"/features"}),
        ({"features": ["metal3", "capacity"]}, {"/features"}),
        ({"region": "x"}, {"/region"}),
    ],
)
def test_attributes_that_are_refused(changed: dict[str, Any], faults: set[str]) -> None:
    assert pointers(created, **changed) == faults


def patched(**attributes: Any) -> tuple[dict[str, Any], dict[str, str | None]]:
    account = replace(kubernetes_account(), secrets=("token",))
    patch = read(CloudAccountPatch, {"attributes": attributes})
    return patch.changes(account), patch.changed_secrets(account)


def test_a_patch_keeps_what_it_does_not_name() -> None:
    changes, secrets = patched(namespaces=["a", "b"])
    assert changes["attributes"] == {**kubernetes_account().attributes, "namespaces": ["a", "b"]}
    assert (changes["secrets"], secrets) == (("token",), {})
    assert patched(token="another-token")[1] == {"token": "another-token"}


def test_another_server_needs_its_credentials_again() -> None:
    for name, value in (("server", "https://other.example.test"), ("certificate_authority", authority_b64())):
        assert pointers(patched, **{name: value}) == {f"/{name}"}
        assert patched(**{name: value, "token": TOKEN})[1] == {"token": TOKEN}


def test_a_token_is_exchanged_for_a_certificate_and_for_a_site() -> None:
    user = certificate()
    changes, secrets = patched(token=None, client_certificate=user.certificate_b64, client_key=user.key_b64)
    assert changes["secrets"] == ("client_key",)
    assert secrets == {"token": None, "client_key": user.key_b64}
    changes, secrets = patched(token=None, server=None, certificate_authority=None, via="basement")
    assert (changes["secrets"], secrets) == ((), {"token": None})
    assert changes["attributes"] == {"via": "basement", "namespaces": ["machines"], "features": ["base"]}
    assert pointers(patched, token=None) == {"/token"}
