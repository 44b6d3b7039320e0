"""``ports.Secrets`` in memory and sealed in a table by a key of KMS (moto); and the stage's own secrets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.envelope import EnvelopeSecrets
from stockyard.adapters.secrets import OwnSecrets
from stockyard.domain.records import SealedSecret
from stockyard.errors import PermissionDenied, VendorError, VendorNotFound, VendorRefused, VendorThrottled
from stockyard.ports import Put, Secrets
from tests.harness.worlds.memory import MemorySecrets

NAME = "acme/clu_1/kubeconfig"
ALIAS = "alias/stockyard-test-cluster-secrets"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield lambda service: boto3.client(service, region_name="us-east-1")


@pytest.fixture
def kms(aws: Any) -> Any:
    client = aws("kms")
    client.create_alias(AliasName=ALIAS, TargetKeyId=client.create_key()["KeyMetadata"]["KeyId"])
    return client


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry()


@pytest.fixture
def sealed(kms: Any, registry: MemoryRegistry) -> EnvelopeSecrets:
    return EnvelopeSecrets(lambda: kms, ALIAS, registry.store)


@pytest.fixture(params=["memory", "envelope"])
def secrets(request: pytest.FixtureRequest) -> Secrets:
    if request.param == "memory":
        return MemorySecrets()
    envelope: Secrets = request.getfixturevalue("sealed")
    return envelope


def test_put_creates_and_overwrites(secrets: Secrets):
    assert secrets.get(NAME) is None
    secrets.put(NAME, "one")
    assert secrets.get(NAME) == "one"
    secrets.put(NAME, "two")
    assert secrets.get(NAME) == "two"


def test_delete_is_immediate_and_idempotent(secrets: Secrets):
    secrets.put(NAME, "one")
    secrets.delete(NAME)
    assert secrets.get(NAME) is None
    assert list(secrets.names("acme/")) == []
    secrets.delete(NAME)
    secrets.put(NAME, "again")
    assert secrets.get(NAME) == "again"


def test_names_filters_by_prefix(secrets: Secrets):
    for name in (NAME, "acme/clu_1/ca", "acme/clu_2/ca", "globex/clu_3/ca", "acme/CLU_1/ca"):
        secrets.put(name, "x")
    assert list(secrets.names("acme/clu_1/")) == ["acme/clu_1/ca", NAME]
    assert list(secrets.names("acme/")) == ["acme/CLU_1/ca", "acme/clu_1/ca", NAME, "acme/clu_2/ca"]
    assert list(secrets.names("nobody/")) == []


def test_names_reads_every_page(secrets: Secrets):
    names = [f"acme/clu_{number:03d}/ca" for number in range(120)]
    for name in names:
        secrets.put(name, "x")
    assert list(secrets.names("acme/")) == names


def test_the_table_holds_nothing_of_the_value(sealed: EnvelopeSecrets, registry: MemoryRegistry):
    sealed.put(NAME, "canary-secret-value")
    record = registry.store("acme").get(SealedSecret, "clu_1/kubeconfig")
    assert record is not None
    assert "canary" not in repr(registry.table)
    assert record.key not in repr(record)
    sealed.put("acme/clu_1/ca", "canary-secret-value")
    other = registry.store("acme").get(SealedSecret, "clu_1/ca")
    assert other is not None
    assert (other.key, other.sealed) != (record.key, record.sealed)


def _changed(record: SealedSecret) -> SealedSecret:
    return replace(record, sealed=record.sealed[:-8] + "AAAAAAA=")


@pytest.mark.parametrize(
    ("tenant", "id", "edit"),
    [
        ("acme", "clu_1/ca", None),
        ("acme", "clu_2/kubeconfig", None),
        ("globex", "clu_1/kubeconfig", None),
        ("acme", "clu_1/kubeconfig", _changed),
    ],
)
def test_what_was_copied_or_changed_in_the_table_does_not_open(
    sealed: EnvelopeSecrets, registry: MemoryRegistry, tenant: str, id: str, edit: Any
):
    sealed.put(NAME, "one")
    record = registry.store("acme").get(SealedSecret, "clu_1/kubeconfig")
    assert record is not None
    registry.store(tenant).commit(Put(replace(edit(record) if edit else record, id=id)))
    with pytest.raises(VendorError) as refused:
        sealed.get(f"{tenant}/{id}")
    assert isinstance(refused.value, VendorRefused)


@pytest.mark.parametrize(
    ("code", "error"), [("ThrottlingException", VendorThrottled), ("AccessDeniedException", PermissionDenied)]
)
def test_errors_of_kms_become_vendor_errors(sealed: EnvelopeSecrets, kms: Any, code: str, error: type[Exception]):
    with Stubber(kms) as stub:
        stub.add_client_error("generate_data_key", code, "no", 400)
        with pytest.raises(error):
            sealed.put(NAME, "one")


def test_own_secret_is_kept_for_five_minutes(aws: Any):
    now, client = [0.0], aws("secretsmanager")
    own = OwnSecrets(client, clock=lambda: now[0])
    with pytest.raises(VendorNotFound):
        own.read("stockyard/test/page-key")
    client.create_secret(Name="stockyard/test/page-key", SecretString="one")
    assert own.read("stockyard/test/page-key") == "one"
    client.put_secret_value(SecretId="stockyard/test/page-key", SecretString="two")
    now[0] = 299.0
    assert own.read("stockyard/test/page-key") == "one"
    now[0] = 301.0
    assert own.read("stockyard/test/page-key") == "two"


def test_own_secret_marked_for_deletion_is_missing(aws: Any):
    client = aws("secretsmanager")
    client.create_secret(Name="stockyard/test/page-key", SecretString="one")
    client.delete_secret(SecretId="stockyard/test/page-key", RecoveryWindowInDays=7)
    with pytest.raises(VendorNotFound):
        OwnSecrets(client).read("stockyard/test/page-key")


@pytest.mark.parametrize(
    ("code", "error"), [("ThrottlingException", VendorThrottled), ("AccessDeniedException", PermissionDenied)]
)
def test_errors_of_secrets_manager_become_vendor_errors(aws: Any, code: str, error: type[Exception]):
    client = aws("secretsmanager")
    with Stubber(client) as stub:
        stub.add_client_error("get_secret_value", code, "no", 400)
        with pytest.raises(error):
            OwnSecrets(client).read("x")


def test_what_was_sealed_opens_under_its_own_name_alone(secrets: Any):
    sealed = secrets.seal("acme/sit_1/a/request", b"\x00value")
    assert secrets.unseal("acme/sit_1/a/request", sealed) == b"\x00value"
    for other in ("acme/sit_1/a/answer", "acme/sit_2/a/request", "other/sit_1/a/request"):
        with pytest.raises(VendorError):
            secrets.unseal(other, sealed)
