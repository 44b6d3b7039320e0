"""Cloud accounts in and out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockyard.domain import cloud_kinds
from stockyard.domain.models.base import read
from stockyard.domain.models.cloud_accounts import (
    CloudAccountCreate,
    CloudAccountPatch,
    CloudAccountView,
)
from stockyard.domain.records import CloudAccount
from stockyard.domain.views import cloud_account_view
from stockyard.errors import InvalidInput

ROLE = "arn:aws:iam::222222222222:role/stockyard"
GOOD = {"provider": "aws", "name": "main", "attributes": {"role_arn": ROLE}}
ACCOUNT = CloudAccount(
    id="3",
    provider="aws",
    name="main",
    description="",
    attributes={"role_arn": ROLE, "region": "eu-west-1"},
    external_id="x" * 32,
    verification="verified",
    verification_message="",
    created_at="t1",
    updated_at="t2",
    tags={"a": "b"},
)


def pointers(model, document):
    with pytest.raises(InvalidInput) as caught:
        read(model, document)
    return {problem.pointer: problem.detail for problem in caught.value.errors}


def test_an_account_is_read_with_its_defaults():
    account = read(CloudAccountCreate, GOOD)
    assert account.public_attributes() == {"role_arn": ROLE, "region": "us-east-1"}
    assert (account.description, account.tags) == ("", {})


@pytest.mark.parametrize("provider", ["lunar"])
def test_providers_that_are_not_built_yet_are_named(provider, monkeypatch):
    monkeypatch.setattr(cloud_kinds._Table, "planned", {provider})
    for attributes in ({"role_arn": ROLE}, {"project": "p", "api_key": "k"}):
        problems = pointers(CloudAccountCreate, {**GOOD, "provider": provider, "attributes": attributes})
        assert problems == {"/provider": f"{provider} is not built yet; only aws, cudo, kubernetes and bcm are"}


@pytest.mark.parametrize("provider", ["gcp", "AWS", "", 1, None])
def test_other_providers_are_unknown(provider):
    assert set(pointers(CloudAccountCreate, {**GOOD, "provider": provider})) == {"/provider"}


@pytest.mark.parametrize(
    ("attributes", "pointer"),
    [
        ({}, "/attributes/role_arn"),
        ({"role_arn": None}, "/attributes/role_arn"),
        ({"role_arn": "arn:aws:iam::1:role/x"}, "/attributes/role_arn"),
        ({"role_arn": "arn:aws:iam::222222222222:user/x"}, "/attributes/role_arn"),
        ({"role_arn": ROLE + "\n"}, "/attributes/role_arn"),
        ({"role_arn": ROLE, "region": "moon"}, "/attributes/region"),
        ({"role_arn": ROLE, "external_id": "mine"}, "/attributes/external_id"),
    ],
)
def test_attributes_that_are_refused(attributes, pointer):
    assert set(pointers(CloudAccountCreate, {**GOOD, "attributes": attributes})) == {pointer}


def test_the_external_id_is_never_the_callers():
    assert pointers(CloudAccountCreate, {**GOOD, "external_id": "mine"}) == {"/external_id": "unknown field"}


def test_a_patch_gives_whole_fields():
    patch = read(CloudAccountPatch, {"attributes": {"region": "us-west-2"}, "tags": {"a": None, "c": "d"}})
    assert patch.changes(ACCOUNT) == {"attributes": {"role_arn": ROLE, "region": "us-west-2"}, "tags": {"c": "d"}}
    assert read(CloudAccountPatch, {}).changes(ACCOUNT) == {}
    assert read(CloudAccountPatch, {"name": "n", "description": "d", "tags": None}).changes(ACCOUNT) == {
        "name": "n",
        "description": "d",
        "tags": {},
    }


@pytest.mark.parametrize(
    ("patch", "pointer"),
    [
        ({"provider": "aws"}, "/provider"),
        ({"name": None}, "/name"),
        ({"attributes": None}, "/attributes"),
        ({"attributes": {"role_arn": None}}, "/attributes/role_arn"),
        ({"attributes": {"external_id": "x"}}, "/attributes/external_id"),
        ({"verification": "verified"}, "/verification"),
    ],
)
def test_patches_that_are_refused(patch, pointer):
    with pytest.raises(InvalidInput) as caught:
        read(CloudAccountPatch, patch).changes(ACCOUNT)
    assert {problem.pointer for problem in caught.value.errors} == {pointer}


def test_the_view_is_of_its_model():
    view = cloud_account_view(ACCOUNT)
    assert CloudAccountView.model_validate(view).id == 3
    assert view["external_id"] == "x" * 32


CUDO = {
    "provider": "cudo",
    "name": "gpus",
    "attributes": {"project_id": "acme-project", "api_key": "key-of-the-project", "data_center_id": "us-dallas-1"},
}
VAULT = {"vault_address": "https://vault.example.test", "vault_role_id": "role", "vault_secret_id": "secret-id-1"}


def with_vault() -> CloudAccount:
    attributes = {"project_id": "acme-project", "data_center_id": "us-dallas-1", **VAULT}
    del attributes["vault_secret_id"]
    return replace(ACCOUNT, provider="cudo", attributes=attributes, secrets=("api_key", "vault_secret_id"))


def test_secrets_of_an_account_are_kept_apart_from_its_attributes():
    account = read(CloudAccountCreate, CUDO)
    assert account.public_attributes() == {"project_id": "acme-project", "data_center_id": "us-dallas-1"}
    assert account.secret_attributes() == {"api_key": "key-of-the-project"}
    assert "key-of-the-project" not in repr(account)
    assert read(CloudAccountCreate, GOOD).secret_attributes() == {}


@pytest.mark.parametrize(
    ("changed", "pointers_of_faults"),
    [
        ({"api_key": None}, {"/attributes/api_key"}),
        ({"api_key": "has a space"}, {"/attributes/api_key"}),
        ({"project_id": "Acme"}, {"/attributes/project_id"}),
        ({"role_arn": ROLE}, {"/attributes/role_arn"}),
        ({"vault_address": "https://v.test"}, {"/attributes/vault_role_id", "/attributes/vault_secret_id"}),
        ({**VAULT, "vault_address": "http://v.test"}, {"/attributes/vault_address"}),
        ({**VAULT, "vault_address": "https://me:pw@v.test"}, {"/attributes/vault_address"}),
        ({**VAULT, "vault_address": "https://v.test:https"}, {"/attributes/vault_address"}),
        ({**VAULT, "vault_address": "https://v.test:99999"}, {"/attributes/vault_address"}),
        ({**VAULT, "vault_address": "https://@v.test/#"}, {"/attributes/vault_address"}),
    ],
)
def test_attributes_of_a_cudo_account_that_are_refused(changed, pointers_of_faults):
    document = {**CUDO, "attributes": {**CUDO["attributes"], **changed}}
    assert set(pointers(CloudAccountCreate, document)) == pointers_of_faults


def test_a_patch_keeps_the_secrets_that_it_does_not_name():
    patch = read(CloudAccountPatch, {"attributes": {"data_center_id": "us-newyork-1"}})
    changes = patch.changes(with_vault())
    assert changes["attributes"]["data_center_id"] == "us-newyork-1"
    assert changes["attributes"]["vault_role_id"] == "role"
    assert changes["secrets"] == ("api_key", "vault_secret_id")
    assert patch.changed_secrets(with_vault()) == {}


def test_a_patch_exchanges_a_key_and_shows_it_to_nobody():
    patch = read(CloudAccountPatch, {"attributes": {"api_key": "another-key"}})
    assert patch.changed_secrets(with_vault()) == {"api_key": "another-key"}
    assert "another-key" not in repr(patch.changes(with_vault()))


def test_a_patch_takes_a_vault_away_whole_or_not_at_all():
    patch = read(CloudAccountPatch, {"attributes": dict.fromkeys(VAULT)})
    changes = patch.changes(with_vault())
    assert changes["attributes"] == {"project_id": "acme-project", "data_center_id": "us-dallas-1"}
    assert (changes["secrets"], patch.changed_secrets(with_vault())) == (("api_key",), {"vault_secret_id": None})
    part = read(CloudAccountPatch, {"attributes": {"vault_secret_id": None}})
    with pytest.raises(InvalidInput, match="vault_secret_id"):
        part.changes(with_vault())
