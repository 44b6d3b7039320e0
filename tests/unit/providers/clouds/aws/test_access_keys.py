"""Accounts in AWS with an access key instead of a role: where the stage allows them, kept sealed, warned of."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.records import CloudAccount
from stockyard.domain.values import ids
from stockyard.errors import CredentialsRevoked, InvalidInput
from stockyard.providers.clouds.aws.attributes import AwsAttributes
from stockyard.providers.clouds.aws.cloud import LASTING_KEY, ROOT_KEY, AwsCloud
from stockyard.providers.clouds.aws.sessions import Sessions, account_number, partition
from tests.harness.worlds.memory import MemorySecrets
from tests.harness.worlds.stage import Stage

USER = "arn:aws:iam::222222222222:user/platform/ops"
KEYS = {"user_arn": USER, "access_key_id": "AKIAIOSFODNN7EXAMPLE"}
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
ACCOUNT = CloudAccount(
    id="7",
    provider="aws",
    name="main",
    description="",
    attributes={**KEYS, "region": "eu-west-1"},
    external_id="x",
    verification="unverified",
    verification_message="",
    created_at="2026-11-25T00:00:00Z",
    updated_at="2026-11-25T00:00:00Z",
    secrets=("secret_access_key",),
)


def attributes_faults(**attributes: Any) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        read(AwsAttributes, attributes, at=("attributes",))
    return [fault.pointer for fault in refused.value.errors]


def test_an_account_has_a_role_or_a_whole_access_key() -> None:
    assert attributes_faults() == ["/attributes/role_arn"]
    assert attributes_faults(**KEYS) == ["/attributes/secret_access_key"]
    role = {"role_arn": "arn:aws:iam::222222222222:role/stockyard"}
    assert attributes_faults(**role, access_key_id=KEYS["access_key_id"]) == ["/attributes/access_key_id"]
    read(AwsAttributes, {**KEYS, "secret_access_key": SECRET})


@pytest.mark.parametrize("key", ["ASIAIOSFODNN7EXAMPLE", "akiaiosfodnn7example", ""])
def test_a_key_that_ends_by_itself_is_none_to_register(key: str) -> None:
    keys = {**KEYS, "access_key_id": key, "secret_access_key": SECRET}
    assert "/attributes/access_key_id" in attributes_faults(**keys)


def test_a_stage_takes_access_keys_only_where_it_says_so() -> None:
    with pytest.raises(InvalidInput) as refused:
        AwsCloud(Stage(), _no_session).check_attributes(ACCOUNT.attributes)
    assert [fault.pointer for fault in refused.value.errors] == ["/attributes/access_key_id"]
    AwsCloud(replace(Stage(), allow_access_keys=True), _no_session).check_attributes(ACCOUNT.attributes)


def test_the_key_is_opened_for_its_tenant_alone() -> None:
    secrets = MemorySecrets()
    secrets.put(ids.account_secret("acme", ACCOUNT.id, "secret_access_key"), SECRET)
    sessions = Sessions(_no_session, secrets=lambda: secrets)
    first = sessions.of(ACCOUNT, "op_1", "acme")
    assert sessions.of(ACCOUNT, "op_2", "acme") is first
    with pytest.raises(CredentialsRevoked):
        sessions.of(ACCOUNT, "op_1", "globex")
    with pytest.raises(CredentialsRevoked):
        Sessions(_no_session).of(ACCOUNT, "op_1", "acme")


def test_an_exchanged_key_is_used_at_once() -> None:
    secrets = MemorySecrets()
    name = ids.account_secret("acme", ACCOUNT.id, "secret_access_key")
    secrets.put(name, SECRET)
    sessions = Sessions(_no_session, secrets=lambda: secrets)
    first = sessions.of(ACCOUNT, "op_1", "acme")
    secrets.put(name, SECRET[::-1])
    assert sessions.of(ACCOUNT, "op_1", "acme") is not first
    secrets.delete(name)
    with pytest.raises(CredentialsRevoked):
        sessions.of(ACCOUNT, "op_1", "acme")


def test_the_user_says_account_and_partition() -> None:
    assert (account_number(ACCOUNT), partition(ACCOUNT)) == ("222222222222", "aws")


def test_the_template_attaches_its_policies_to_the_user() -> None:
    document = AwsCloud(Stage(), _no_session).template(ACCOUNT, "inst_1")
    policies = {n: r["Properties"] for n, r in document["Resources"].items() if r["Type"] == "AWS::IAM::ManagedPolicy"}
    attached = {name for name, properties in policies.items() if properties.get("Users") == ["ops"]}
    assert attached == policies.keys() - {"Boundary", "EksBoundary"}
    assert "Role" not in document["Resources"]
    assert SECRET not in json.dumps(document)


def test_the_root_users_key_is_refused_before_it_is_used() -> None:
    root = replace(ACCOUNT, attributes={**ACCOUNT.attributes, "user_arn": "arn:aws:iam::222222222222:root"})
    verification = AwsCloud(Stage(), _no_session, MemorySecrets).verify(root, "acme")
    assert not verification.works
    assert verification.message == ROOT_KEY


def test_the_root_user_needs_no_policy() -> None:
    root = replace(ACCOUNT, attributes={**ACCOUNT.attributes, "user_arn": "arn:aws:iam::222222222222:root"})
    document = AwsCloud(Stage(), _no_session).template(root, "inst_1")
    assert not any("Users" in resource["Properties"] for resource in document["Resources"].values())


def test_a_verification_says_whose_key_it_is_and_warns_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = MemorySecrets()
    secrets.put(ids.account_secret("acme", ACCOUNT.id, "secret_access_key"), SECRET)
    cloud = AwsCloud(Stage(), _no_session, lambda: secrets)
    callers = iter([USER, "arn:aws:iam::222222222222:user/eve"])
    monkeypatch.setattr(
        "stockyard.providers.clouds.aws.cloud.Calls.call",
        lambda _calls, service, _operation, **_: (
            {"Arn": next(callers), "UserId": "AIDAEXAMPLE"} if service == "sts" else {"projects": []}
        ),
    )
    verified = cloud.verify(ACCOUNT, "acme")
    assert (verified.works, verified.warnings) == (True, (LASTING_KEY,))
    assert verified.principal_id == "AIDAEXAMPLE"
    other = cloud.verify(ACCOUNT, "acme")
    assert not other.works
    assert "eve" in other.message
    assert not cloud.verify(ACCOUNT, "globex").works


def _no_session() -> Any:
    raise AssertionError("our own session is not asked")
