"""The contract of ``ports.Registry``, and that tenants are apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws

from local.aws.corrections.tables import atomic_tables
from local.testing.memory_store import MemoryRegistry, MemoryStore
from stockyard import errors
from stockyard.adapters.dynamodb import keys
from stockyard.adapters.dynamodb.keys import due_partition, due_partitions
from stockyard.adapters.dynamodb.registry import DynamoRegistry
from stockyard.adapters.dynamodb.store import DynamoStore
from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import (
    CloudAccount,
    Cluster,
    Counter,
    Event,
    Idempotency,
    Name,
    NodeClaim,
    Outbox,
    Placement,
    Quota,
    Record,
)
from stockyard.ports import Add, Create, Remove, Replace, Store
from tests.contracts.store.conftest import make_table

TIME = "2026-01-31T12:00:00.000Z"
NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


# --- tenants ----------------------------------------------------------------------------------------------------------


def test_tenants_are_isolated(
    registry: MemoryRegistry | DynamoRegistry, cluster: Callable[..., Any], counted: Callable[..., Any]
) -> None:
    acme, acme_2 = registry.store("acme"), registry.store("acme-2")
    acme.commit(Create(cluster()), Add("clusters", 1))
    assert (acme.tenant, acme_2.tenant) == ("acme", "acme-2")
    assert acme_2.get(Cluster, "clu_1") is None
    assert acme_2.list(Cluster).items == []
    assert counted(acme_2, "clusters") == 0
    acme_2.commit(Create(cluster(name="theirs")))
    acme_2.commit(Remove(Cluster, "clu_1"))
    record = acme.get(Cluster, "clu_1")
    assert record is not None
    assert record.name == "one"


@pytest.mark.parametrize("tenant", ["", "acme#Cluster", "a#b", "Acme", "-acme", "a" * 64, "acme\n", "_platform", "a b"])
def test_tenant_with_invalid_name_is_refused(registry: MemoryRegistry | DynamoRegistry, tenant: str) -> None:
    with pytest.raises(errors.Forbidden):
        registry.store(tenant)


def test_ids_do_not_reach_other_partitions(registry: MemoryRegistry | DynamoRegistry) -> None:
    acme = registry.store("a")
    acme.commit(Create(Name("#b#Name#x", "clu_1")))
    assert registry.store("b").list(Name).items == []
    assert acme.get(Name, "#b#Name#x") is not None


# --- what spans tenants -----------------------------------------------------------------------------------------------


def in_order(records: Any) -> list[tuple[str, str]]:
    return [(tenant, record.id) for tenant, record in records]


def test_due_returns_outbox_items_of_all_tenants_oldest_first(registry: MemoryRegistry | DynamoRegistry) -> None:
    late, soon = "2026-01-31T11:59:59.000Z", "2026-01-31T11:00:00.000Z"
    registry.store("acme").commit(
        Create(Outbox("out_1", "event", {"a": 1}, late)), Create(Outbox("out_2", "event", {}, TIME))
    )
    registry.store("globex").commit(Create(Outbox("out_3", "workflow", {}, soon)))
    assert in_order(registry.due(Outbox, NOW)) == [("globex", "out_3"), ("acme", "out_1")]
    assert in_order(registry.due(Outbox, NOW, limit=1)) == [("globex", "out_3")]
    registry.store("globex").commit(Remove(Outbox, "out_3"))
    assert in_order(registry.due(Outbox, NOW)) == [("acme", "out_1")]
    assert registry.due(Outbox, NOW)[0][1].payload == {"a": 1}


def test_due_reads_all_outbox_partitions(
    registry: MemoryRegistry | DynamoRegistry,
) -> None:
    items = [Outbox(f"out_{number:02}", "event", {}, f"2026-01-31T11:00:{number:02}.000Z") for number in range(40)]
    registry.store("acme").commit(*map(Create, items))
    assert {due_partition("acme", item) for item in items} == set(due_partitions(Outbox))
    assert len(due_partitions(Outbox)) == 8
    assert [item.id for _, item in registry.due(Outbox, NOW)] == [item.id for item in items]
    assert [item.id for _, item in registry.due(Outbox, NOW, limit=5)] == [item.id for item in items[:5]]


def _due_pool(number: int) -> Pool:
    due_at = f"2026-01-31T11:00:{number:02}.000Z"
    return Pool(
        id=f"clu_{number:02}/web", cluster_id=f"clu_{number:02}", name="web", kind="dynamic", created_at=due_at,
        updated_at=due_at, due_at=due_at,
    )  # fmt: skip


def test_due_reads_all_partitions_of_pools(registry: MemoryRegistry | DynamoRegistry) -> None:
    pools = [_due_pool(number) for number in range(40)]
    registry.store("acme").commit(*map(Create, pools))
    assert {due_partition("acme", pool) for pool in pools} == set(due_partitions(Pool))
    assert len(due_partitions(Pool)) == len(due_partitions(ClusterDisruption)) == 8
    assert [pool.id for _, pool in registry.due(Pool, NOW)] == [pool.id for pool in pools]


def test_a_pool_that_an_earlier_release_has_written_is_due_once_and_then_stands_in_its_own_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with mock_aws(), atomic_tables():
        client = boto3.client("dynamodb", region_name="us-east-1")
        make_table(client)
        registry = DynamoRegistry(client, "stockyard")
        store, pools = registry.store("acme"), [_due_pool(number) for number in range(8)]
        with monkeypatch.context() as earlier:
            earlier.setattr(keys, "due_partition", lambda _, record: f"DUE#{type(record).__name__}")
            store.commit(*map(Create, pools))
        assert [pool.id for _, pool in registry.due(Pool, NOW)] == [pool.id for pool in pools]
        store.commit(*(Replace(replace(pool, due_at=TIME, version=2)) for pool in pools))
        items = client.scan(TableName="stockyard", IndexName="due")["Items"]
        assert {item["due_pk"]["S"] for item in items} == {due_partition("acme", pool) for pool in pools}
        assert len(items) == 8


def test_postponed_outbox_item_is_due_later_and_once(
    registry: MemoryRegistry | DynamoRegistry,
) -> None:
    store = registry.store("acme")
    first, second = (Outbox(name, "event", {}, "2026-01-31T11:00:00.000Z") for name in ("out_1", "out_2"))
    store.commit(Create(first), Create(second))
    store.commit(Replace(replace(first, due_at=TIME, version=2)))
    assert in_order(registry.due(Outbox, NOW)) == [("acme", "out_2")]
    assert in_order(registry.due(Outbox, NOW + timedelta(seconds=1))) == [("acme", "out_2"), ("acme", "out_1")]
    store.commit(Remove(Outbox, "out_2"))
    with pytest.raises(errors.Conflict):
        store.commit(Replace(replace(second, due_at=TIME, version=2)))
    assert store.get(Outbox, "out_2") is None


def test_due_returns_unseen_clusters_only(
    registry: MemoryRegistry | DynamoRegistry, cluster: Callable[..., Any]
) -> None:
    store = registry.store("acme")
    lease = "2026-01-31T11:00:00.000Z"
    store.commit(
        Create(cluster("clu_1", status="accepting", lease_expires_at=lease)),
        Create(cluster("clu_2", status="ready", lease_expires_at=lease)),
        Create(cluster("clu_4", status="undoing", lease_expires_at="2026-01-31T11:30:00.000Z")),
        Create(cluster("clu_3", status="accepting", lease_expires_at="2026-01-31T13:00:00.000Z")),
    )
    due, later = registry.due(Cluster, NOW), registry.due(Cluster, NOW + timedelta(hours=2))
    assert in_order(due) == [("acme", "clu_1"), ("acme", "clu_4")]
    assert in_order(later) == [("acme", "clu_1"), ("acme", "clu_4"), ("acme", "clu_3")]
    store.commit(Remove(Cluster, "clu_4", version=1, fence={"status": "undoing"}))
    store.commit(Replace(cluster("clu_1", status="preparing", version=2)))
    assert registry.due(Cluster, NOW) == []


def test_all_returns_records_of_all_tenants(
    registry: MemoryRegistry | DynamoRegistry, cluster: Callable[..., Any]
) -> None:
    account = CloudAccount("1", "aws", "main", "", {}, "x", "unverified", "", TIME, TIME)
    registry.store("globex").commit(Create(account), Create(cluster("clu_1")))
    registry.store("acme").commit(Create(account), Create(cluster("clu_2")), Create(cluster("clu_3")))
    assert in_order(registry.all(CloudAccount)) == [("acme", "1"), ("globex", "1")]
    assert in_order(registry.all(Cluster)) == [("globex", "clu_1"), ("acme", "clu_2"), ("acme", "clu_3")]
    registry.store("acme").commit(Remove(Cluster, "clu_2"))
    assert in_order(registry.all(Cluster)) == [("globex", "clu_1"), ("acme", "clu_3")]


def test_all_reads_pages_lazily(
    registry: MemoryRegistry | DynamoRegistry, cluster: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stockyard.adapters.dynamodb.registry._PAGE", 2)
    store = registry.store("acme")
    names = [f"clu_{number}" for number in range(7)]
    store.commit(*[Create(cluster(name)) for name in names])
    records = registry.all(Cluster)
    assert next(records)[1].id == "clu_0"
    assert [record.id for _, record in records] == names[1:]


def test_tenant_of_requires_whole_id(registry: MemoryRegistry | DynamoRegistry, cluster: Callable[..., Any]) -> None:
    registry.store("acme").commit(Create(cluster("clu_11")))
    registry.store("globex").commit(Create(cluster("clu_1")))
    assert registry.tenant_of(Cluster, "clu_1") == "globex"
    assert registry.tenant_of(Cluster, "clu_11") == "acme"
    assert registry.tenant_of(Cluster, "clu_") is None


@pytest.mark.parametrize("ask", [lambda r: r.due(Event, NOW), lambda r: r.all(Event)])
def test_kinds_without_index_raise_value_error(
    registry: MemoryRegistry | DynamoRegistry, ask: Callable[[MemoryRegistry | DynamoRegistry], object]
) -> None:
    with pytest.raises(ValueError, match="Event"):
        ask(registry)


def test_installation_id_is_created_once(registry: MemoryRegistry | DynamoRegistry) -> None:
    first = registry.installation(b"\x01" * 16)
    assert first == "01" * 16
    assert registry.installation(b"\x02" * 16) == first
    assert registry.platform().tenant == "_platform"


def test_every_kind_of_record_can_be_stored(store: Store, event: Callable[..., Any]) -> None:
    records: list[Record] = [
        event(1),
        Idempotency("POST /v1/clusters key", "d", "done", TIME, TIME, 202, {"ETag": "1"}, {"id": "x"}, 1769860800),
        Quota("clusters", 3, TIME),
        Counter("clusters", 3),
    ]
    store.commit(*[Create(record) for record in records])
    assert [store.get(type(record), record.id) for record in records] == records


def test_store_constructor_refuses_invalid_tenant() -> None:
    with pytest.raises(errors.Forbidden):
        MemoryStore(MemoryRegistry().table, "a#b")
    with pytest.raises(errors.Forbidden):
        DynamoStore(object(), "stockyard", "a#b")


# --- claims in hand ---------------------------------------------------------------------------------------------------


def _claim(number: int, **fields: Any) -> NodeClaim:
    return NodeClaim(f"ncl_{number}", f"c{number}", TIME, TIME, cluster_id="clu_1", **fields)


def test_due_returns_waiting_claims_of_all_shards_oldest_first(registry: MemoryRegistry | DynamoRegistry) -> None:
    acme = registry.store("acme")
    moments = {number: f"2026-01-31T12:00:{number:02}.000Z" for number in range(20)}
    for number, moment in moments.items():
        acme.commit(Create(_claim(number, due_at=moment)))
    due = registry.due(NodeClaim, NOW + timedelta(seconds=15))
    assert [claim.id for _, claim in due] == [f"ncl_{number}" for number in range(15)]
    assert [claim.id for _, claim in registry.due(NodeClaim, NOW + timedelta(hours=1), 3)] == [
        "ncl_0",
        "ncl_1",
        "ncl_2",
    ]


def test_due_of_tenants_reads_theirs_alone(registry: MemoryRegistry | DynamoRegistry) -> None:
    tenants = [f"tenant-{number}" for number in range(20)]
    for number, tenant in enumerate(tenants):
        registry.store(tenant).commit(Create(_claim(number, due_at=f"2026-01-31T12:00:{number:02}.000Z")))
    end = NOW + timedelta(hours=1)
    assert len(registry.due(NodeClaim, end)) == 20
    asked_for = {"tenant-3", "tenant-11"}
    due = registry.due(NodeClaim, end, tenants=asked_for)
    assert in_order(due) == [("tenant-3", "ncl_3"), ("tenant-11", "ncl_11")]
    assert in_order(registry.due(NodeClaim, end, 1, tenants=asked_for)) == [("tenant-3", "ncl_3")]
    assert registry.due(NodeClaim, end, tenants=()) == []
    assert len(due_partitions(NodeClaim, asked_for)) <= 2 < len(due_partitions(NodeClaim)) == 16


def test_due_reads_on_from_a_time(registry: MemoryRegistry | DynamoRegistry) -> None:
    for number in range(12):
        claim = _claim(number, due_at=f"2026-01-31T12:00:{number // 2:02}.000Z")
        registry.store("acme" if number % 2 else "globex").commit(Create(claim))
    since, end = NOW + timedelta(seconds=2), NOW + timedelta(seconds=4)
    due = registry.due(NodeClaim, end, since=since)
    assert in_order(due) == [("globex", "ncl_4"), ("acme", "ncl_5"), ("globex", "ncl_6"), ("acme", "ncl_7")]
    assert in_order(registry.due(NodeClaim, end, 1, since)) == [("globex", "ncl_4")]
    later = registry.due(NodeClaim, end + timedelta(milliseconds=1), since=since + timedelta(milliseconds=1))
    assert [claim.id for _, claim in later] == ["ncl_6", "ncl_7", "ncl_8", "ncl_9"]
    assert registry.due(NodeClaim, since, since=since) == []
    assert registry.due(NodeClaim, since, since=end) == []


def test_in_hand_returns_claims_of_cluster(registry: MemoryRegistry | DynamoRegistry) -> None:
    acme = registry.store("acme")
    placed = Placement("npr_1", "lab.small", "on-demand", ("a",), 1.0, TIME)
    acme.commit(
        Create(_claim(1, placement=placed)),
        Create(_claim(2, due_at=TIME)),
        Create(_claim(3, placement=placed, phase="Available")),
        Create(_claim(4, placement=placed, phase="Available", deleting=True)),
        Create(_claim(5, phase="Failed")),
    )
    assert [(tenant, claim.id) for tenant, claim in registry.in_hand("clu_1")] == [("acme", "ncl_1"), ("acme", "ncl_4")]
    assert registry.in_hand("clu_2") == []
