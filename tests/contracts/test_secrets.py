"""``ports.Secrets`` in memory and on Secrets Manager (moto)."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws
from mypy_boto3_secretsmanager import SecretsManagerClient

from local.memory import MemorySecrets
from stockyard.adapters.secrets import SecretsManagerSecrets
from stockyard.errors import PermissionDenied, VendorConflict, VendorNotFound, VendorThrottled
from stockyard.ports import Secrets

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


def test_delete_is_at_once_and_a_missing_one_is_no_error(secrets: Secrets):
    secrets.put(NAME, "one")
    secrets.delete(NAME)
    assert secrets.get(NAME) is None
    assert list(secrets.names("acme/")) == []
    secrets.delete(NAME)
    secrets.put(NAME, "again")
    assert secrets.get(NAME) == "again"


def test_names_are_those_below_a_prefix(secrets: Secrets):
    for name in (NAME, "acme/clu_1/ca", "acme/clu_2/ca", "globex/clu_3/ca", "Acme/clu_4/ca"):
        secrets.put(name, "x")
    assert list(secrets.names("acme/clu_1/")) == ["acme/clu_1/ca", NAME]
    assert list(secrets.names("acme/")) == ["acme/clu_1/ca", NAME, "acme/clu_2/ca"]
    assert list(secrets.names("nobody/")) == []


def test_names_are_read_page_by_page(secrets: Secrets):
    wanted = [f"acme/clu_{number:03d}/ca" for number in range(120)]
    for name in wanted:
        secrets.put(name, "x")
    assert list(secrets.names("acme/")) == wanted


def test_names_and_tags_in_the_account(client):
    SecretsManagerSecrets(client, "stockyard/test", tags={"stockyard:installation": "i-1"}).put(NAME, "one")
    described = client.describe_secret(SecretId=f"stockyard/test/clusters/{NAME}")
    assert {tag["Key"]: tag["Value"] for tag in described["Tags"]} == {
        "stockyard:installation": "i-1",
        "stockyard:tenant": "acme",
        "stockyard:resource": "clu_1",
    }


def test_the_stages_own_secrets_are_kept_five_minutes(client):
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


def test_a_secret_marked_for_deletion_is_gone(client):
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
def test_a_name_whose_deletion_settles_can_be_tried_again(client, refusals: list[tuple[str, str]]):
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
def test_refusals_come_out_as_ours(client, code: str, status: int, error: type[Exception]):
    with Stubber(client) as stub:
        stub.add_client_error("get_secret_value", code, "no", status)
        with pytest.raises(error):
            SecretsManagerSecrets(client, "stockyard/test").get(NAME)
