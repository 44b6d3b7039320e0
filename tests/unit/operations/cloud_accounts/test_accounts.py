"""Cloud accounts are counted, and name regions that their cloud has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import CloudAccount, Quota
from stockyard.errors import InvalidInput, NotFound, QuotaExceeded
from stockyard.operations.cloud_accounts.accounts import (
    change_account,
    delete_account,
    find_account,
    plan_registration,
    register_account,
    verify_account,
)
from stockyard.operations.clusters.creation.check import account_of
from stockyard.operations.quotas.limits import view
from stockyard.ports import Put
from tests.unit.operations.conftest import World

ROLE = "arn:aws:iam::222222222222:role/stockyard"


@pytest.fixture(autouse=True)
def number_of_the_first(world: World) -> None:
    """The world's own account has number 1."""
    assert world.services.store.next_number("cloud-account") == 1


def register(world: World, region: str = "us-east-1", claim: str | None = None) -> CloudAccount:
    attributes: dict[str, Any] = {"role_arn": ROLE, "region": region}
    return register_account(
        world.services,
        provider="aws",
        name="main",
        description="",
        attributes=attributes,
        tags={},
        actor="user:ann",
        claim=claim,
    )


def test_accounts_count_for_a_quota_and_a_deleted_one_makes_room(world: World) -> None:
    before = view(world.services, "cloud_accounts")["used"]
    world.services.store.commit(Put(Quota("cloud_accounts", before + 1, "")))
    account = register(world, claim="one")
    assert register(world, claim="one") == account
    with pytest.raises(QuotaExceeded, match="'cloud_accounts' allows"):
        register(world)
    with pytest.raises(QuotaExceeded):
        plan_registration(world.services, "aws", account.attributes)
    operation = delete_account(world.services, account.id, "user:ann")
    assert (operation.subject, operation.subject_name) == (f"cloud-account/{account.id}", account.name)
    register(world)


def test_an_account_is_found_by_its_number_or_by_a_name_that_it_alone_has(world: World) -> None:
    second = register(world)
    assert find_account(world.services, second.id) == second
    with pytest.raises(InvalidInput, match=f"2 cloud accounts are called main: give the number, 1 and {second.id}"):
        find_account(world.services, "main")
    change_account(world.services, second.id, 1, {"name": "other"}, "user:ann", "req-1")
    assert find_account(world.services, "other").id == second.id
    for nobody in ("9", "nobody"):
        with pytest.raises(NotFound):
            find_account(world.services, nobody)


def test_a_region_that_the_cloud_does_not_have_is_refused(world: World) -> None:
    with pytest.raises(InvalidInput) as refused:
        register(world, "nowhere-1")
    assert [problem.pointer for problem in refused.value.errors] == ["/attributes/region"]
    account = register(world)
    with pytest.raises(InvalidInput):
        change_account(
            world.services,
            account.id,
            account.version,
            {"attributes": {**account.attributes, "region": "nowhere-1"}},
            "user:ann",
            "request",
        )


def cudo(world: World, **secrets: str) -> CloudAccount:
    return register_account(
        world.services,
        provider="cudo",
        name="gpus",
        description="",
        attributes={"project_id": "acme-project", "data_center_id": "us-dallas-1"},
        tags={},
        actor="user:ann",
        secrets=secrets,
    )


def names(world: World) -> list[str]:
    return [name for name in world.services.secrets.names(f"{world.services.tenant}/") if "cloud-account" in name]


def test_the_secrets_of_an_account_are_sealed_exchanged_and_forgotten_with_it(world: World) -> None:
    account = cudo(world, api_key="first", vault_secret_id="second")
    key, secret_id = names(world)
    assert key == f"{world.services.tenant}/cloud-account-{account.id}/api_key"
    assert [world.services.secrets.get(name) for name in (key, secret_id)] == ["first", "second"]
    assert "first" not in repr(account)
    changed = change_account(
        world.services,
        account.id,
        account.version,
        {"secrets": ("api_key",)},
        "user:ann",
        "r1",
        {"api_key": "third", "vault_secret_id": None},
    )
    assert (changed.verification, changed.secrets) == ("unverified", ("api_key",))
    assert (names(world), world.services.secrets.get(key)) == ([key], "third")
    delete_account(world.services, account.id, "user:ann")
    assert names(world) == []


def test_a_refused_registration_leaves_no_secret(world: World) -> None:
    before = view(world.services, "cloud_accounts")["used"]
    world.services.store.commit(Put(Quota("cloud_accounts", before + 1, "")))
    cudo(world, api_key="first")
    sealed = names(world)
    with pytest.raises(QuotaExceeded):
        cudo(world, api_key="second")
    assert names(world) == sealed


def test_clusters_are_refused_where_none_can_be_made_yet(world: World) -> None:
    account = cudo(world, api_key="first")
    with pytest.raises(InvalidInput) as refused:
        account_of(world.services, int(account.id), "k8s")
    (problem,) = refused.value.errors
    assert (problem.pointer, problem.detail) == ("/cloud_account_id", "Clusters on Cudo Compute are not built yet.")


def test_who_we_are_is_kept_until_somebody_else_is_named(world: World) -> None:
    account = register(world)
    assert verify_account(world.services, account.id, "user:ann").principal_id == "", "a cloud that tells none"
    first = replace(verify_account(world.services, account.id, "user:ann"), principal_id="AROA1")
    world.services.store.commit(Put(first))
    verified = verify_account(world.services, account.id, "user:ann")
    assert verified.principal_id == "AROA1"
    for attributes, expected in (({"region": "eu-west-1"}, "AROA1"), ({"role_arn": f"{ROLE}-two"}, "")):
        fields = {"attributes": {**verified.attributes, **attributes}}
        verified = change_account(world.services, account.id, verified.version, fields, "user:ann", "request")
        assert verified.principal_id == expected
