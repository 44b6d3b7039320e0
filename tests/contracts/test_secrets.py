"""``ports.Secrets`` in memory and on Secrets Manager (moto)."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws
from mypy_boto3_secretsmanager import SecretsManagerClient

from stockyard.adapters.secrets import SecretsManagerSecrets
from stockyard.errors import PermissionDenied, VendorConflict, VendorNotFound, VendorThrottled
from stockyard.ports import Secrets
from tests.harness.memory import MemorySecrets

NAME = "acme/clu_1/kubeconfig"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[SecretsManagerClient]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield boto3.client("secretsmanager", region_name="us-east-1")


@pytest.fixture(params=["memory", "secrets-manager"])
def secrets(request: pytest.FixtureRequest) -> Secrets:
    if request.param == "memory":
        return MemorySecrets()
    return SecretsManagerSecrets(request.getfixturevalue("client"), "stockyard/test")


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
    for name in (NAME, "acme/clu_1/ca", "acme/clu_2/ca", "globex/clu_3/ca", "Acme/clu_4/ca"):
        secrets.put(name, "x")
    assert list(secrets.names("acme/clu_1/")) == ["acme/clu_1/ca", NAME]
    assert list(secrets.names("acme/")) == ["acme/clu_1/ca", NAME, "acme/clu_2/ca"]
    assert list(secrets.names("nobody/")) == []


def test_names_reads_every_page(secrets: Secrets):
    names = [f"acme/clu_{number:03d}/ca" for number in range(120)]
    for name in names:
        secrets.put(name, "x")
    assert list(secrets.names("acme/")) == names


def test_secret_has_stage_prefix_and_tags(client):
    SecretsManagerSecrets(client, "stockyard/test").put(NAME, "one")
    described = client.describe_secret(SecretId=f"stockyard/test/clusters/{NAME}")
    assert {tag["Key"]: tag["Value"] for tag in described["Tags"]} == {
        "stockyard:tenant": "acme",
        "stockyard:resource": "clu_1",
    }


def test_own_secret_is_cached_for_five_minutes(client):
    now = [0.0]
    secrets = SecretsManagerSecrets(client, "stockyard/test", clock=lambda: now[0])
    with pytest.raises(VendorNotFound):
        secrets.own("stockyard/test/page-key")
    client.create_secret(Name="stockyard/test/page-key", SecretString="one")
    assert secrets.own("stockyard/test/page-key") == "one"
    client.put_secret_value(SecretId="stockyard/test/page-key", SecretString="two")
    now[0] = 299.0
    assert secrets.own("stockyard/test/page-key") == "one"
    now[0] = 301.0
    assert secrets.own("stockyard/test/page-key") == "two"


def test_secret_marked_for_deletion_is_missing(client):
    secrets = SecretsManagerSecrets(client, "stockyard/test")
    secrets.put(NAME, "one")
    client.delete_secret(SecretId=f"stockyard/test/clusters/{NAME}", RecoveryWindowInDays=7)
    assert secrets.get(NAME) is None


@pytest.mark.parametrize(
    "refusals",
    [
        [("create_secret", "InvalidRequestException")],
        [("create_secret", "ResourceExistsException"), ("put_secret_value", "InvalidRequestException")],
        [("create_secret", "ResourceExistsException"), ("put_secret_value", "ResourceNotFoundException")],
    ],
)
def test_put_during_deletion_is_retryable(client, refusals: list[tuple[str, str]]):
    with Stubber(client) as stub:
        for operation, code in refusals:
            stub.add_client_error(operation, code, "scheduled for deletion", 400)
        with pytest.raises(VendorConflict) as caught:
            SecretsManagerSecrets(client, "stockyard/test").put(NAME, "canary-secret-value")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [("ThrottlingException", 400, VendorThrottled), ("AccessDeniedException", 400, PermissionDenied)],
)
def test_errors_of_secrets_manager_become_vendor_errors(client, code: str, status: int, error: type[Exception]):
    with Stubber(client) as stub:
        stub.add_client_error("get_secret_value", code, "no", status)
        with pytest.raises(error):
            SecretsManagerSecrets(client, "stockyard/test").get(NAME)
