"""``ports.ObjectStorage`` in memory and in a bucket of S3 (moto)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from stockyard.adapters.object_storage import S3ObjectStorage
from stockyard.domain.platform import PLATFORM
from stockyard.errors import Forbidden, PermissionDenied
from stockyard.ports import ObjectStorage
from tests.harness.worlds.memory import MemoryObjects

BUCKET = "stockyard-test-123456789012-us-east-1"
StorageOf = Callable[[str], ObjectStorage]


@pytest.fixture(params=["memory", "s3"])
def storage_of(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[StorageOf]:
    if request.param == "memory":
        yield MemoryObjects()
        return
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        yield lambda tenant: S3ObjectStorage(lambda: client, BUCKET, tenant)


def test_an_object_is_what_was_put_last_until_it_is_deleted(storage_of: StorageOf):
    storage = storage_of("acme")
    assert storage.get("logs/op_1/0001/console/0000") is None
    storage.delete("logs/op_1/0001/console/0000")
    for data in (b"one", b"", bytes(range(256))):
        storage.put("logs/op_1/0001/console/0000", data)
        assert storage.get("logs/op_1/0001/console/0000") == data
    storage.delete("logs/op_1/0001/console/0000")
    assert storage.get("logs/op_1/0001/console/0000") is None


def test_a_tenant_has_no_other_tenants_objects(storage_of: StorageOf):
    storage_of("acme").put("logs/x", b"of acme")
    for name in ("logs/x", "logs/../acme/x", "logs/acme/x", "../logs/acme/x"):
        assert storage_of("globex").get(name) is None
        assert storage_of(PLATFORM).get(name) is None


def test_keys_begin_with_the_kind_of_object_and_the_tenant(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(Forbidden):
        S3ObjectStorage(lambda: None, BUCKET, "acme/x")
    client = boto3.client("s3", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    stub = Stubber(client)
    stub.add_response("delete_object", {}, {"Bucket": BUCKET, "Key": "logs/acme/op_1/part"})
    stub.add_client_error("get_object", "AccessDenied", http_status_code=403)
    with stub:
        storage = S3ObjectStorage(lambda: client, BUCKET, "acme")
        storage.delete("logs/op_1/part")
        with pytest.raises(PermissionDenied):
            storage.get("logs/op_1/part")
