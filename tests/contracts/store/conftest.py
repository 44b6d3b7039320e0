"""The stores under test, and records to put into them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from moto import mock_aws

from local.aws.corrections.tables import atomic_tables
from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.dynamodb.registry import DynamoRegistry
from stockyard.domain.records import (
    Cluster,
    Counter,
    Event,
)
from stockyard.ports import Store

TIME = "2026-01-31T12:00:00.000Z"
NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def make_table(client: Any) -> None:
    attributes = ["pk", "sk", "due_pk", "due_sk", "all_pk", "all_sk"]

    def schema(hash_key: str, range_key: str) -> list[dict[str, str]]:
        return [{"AttributeName": hash_key, "KeyType": "HASH"}, {"AttributeName": range_key, "KeyType": "RANGE"}]

    def index(name: str, stem: str) -> dict[str, Any]:
        keys = schema(f"{stem}_pk", f"{stem}_sk")
        return {"IndexName": name, "KeySchema": keys, "Projection": {"ProjectionType": "ALL"}}

    client.create_table(
        TableName="stockyard",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=schema("pk", "sk"),
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in attributes],
        GlobalSecondaryIndexes=[index("due", "due"), index("everything", "all")],
    )


@pytest.fixture(params=["memory", "dynamodb"])
def registry(request: pytest.FixtureRequest) -> Iterator[MemoryRegistry | DynamoRegistry]:
    if request.param == "memory":
        yield MemoryRegistry()
        return
    with mock_aws(), atomic_tables():
        client = boto3.client("dynamodb", region_name="us-east-1")
        make_table(client)
        yield DynamoRegistry(client, "stockyard")


@pytest.fixture
def store(registry: MemoryRegistry | DynamoRegistry) -> Store:
    return registry.store("acme")


@pytest.fixture
def cluster() -> Callable[..., Cluster]:
    """Makes clusters."""

    def make(id: str = "clu_1", **changes: Any) -> Cluster:
        record = Cluster(
            id=id,
            name="one",
            description="",
            cluster_type="k8s",
            provider="aws",
            cloud_account_id=1,
            client_id="one-0123456789ab",
            status="preparing",
            settings={"region_name": "us-east-1", "groups": [{"name": "a", "min": 0}], "nothing": None, "ratio": 0.1},
            created_at=TIME,
            updated_at=TIME,
        )
        return replace(record, **changes)

    return make


@pytest.fixture
def event() -> Callable[..., Event]:
    """Makes events whose ids sort by their number."""

    def make(number: int, subject: str = "clu_1") -> Event:
        return Event(f"evt_{number:04}", "Cluster", subject, number, TIME, "ada", None, "preparing", "Accepted", "ok")

    return make


@pytest.fixture
def counted() -> Callable[[Store, str], int]:
    """Reads the value of a counter."""

    def read(store: Store, counter: str) -> int:
        record = store.get(Counter, counter)
        return record.value if record else 0

    return read
