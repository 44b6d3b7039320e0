"""Records that the platform shares: every tenant's store reads them and takes places of them, and cannot change
them."""

from __future__ import annotations

import pytest

from local.testing.memory_store import MemoryRegistry
from stockyard import errors
from stockyard.adapters.dynamodb.registry import DynamoRegistry
from stockyard.domain.platform import SHARED, use_of
from stockyard.domain.records import Counter, Fact, Name, NodeProvider
from stockyard.ports import Add, Check, Create, Put, Remove, Replace, Write

AnyRegistry = MemoryRegistry | DynamoRegistry
SHARED_PROVIDER = NodeProvider("spr_1", "lab", "simulated", {"simulated": {}}, "t1", "t1")
OWN_PROVIDER = NodeProvider("npr_1", "own", "simulated", {"simulated": {}}, "t1", "t1")
PLACES = "capacity/spr_1/small"


@pytest.fixture
def shared(registry: AnyRegistry) -> AnyRegistry:
    registry.platform().commit(Create(SHARED_PROVIDER), Create(Name("shared/node-provider/lab", SHARED_PROVIDER.id)))
    registry.store("acme").commit(Create(OWN_PROVIDER))
    return registry


def test_shared_provider_is_readable_by_every_tenant(shared: AnyRegistry) -> None:
    for store in (shared.platform(), shared.store("acme"), shared.store("globex")):
        assert store.get(NodeProvider, SHARED_PROVIDER.id) == SHARED_PROVIDER
        assert store.list(NodeProvider, prefix=SHARED).items == [SHARED_PROVIDER]
        name = store.get(Name, "shared/node-provider/lab")
        assert name is not None
        assert name.owner == SHARED_PROVIDER.id


def test_shared_provider_is_not_in_tenants_list(shared: AnyRegistry) -> None:
    assert shared.store("acme").list(NodeProvider).items == [OWN_PROVIDER]
    assert shared.store("globex").list(NodeProvider).items == []
    assert shared.platform().list(NodeProvider).items == [SHARED_PROVIDER]
    assert sorted((tenant, record.id) for tenant, record in shared.all(NodeProvider)) == [
        ("_platform", "spr_1"),
        ("acme", "npr_1"),
    ]


def test_shared_provider_has_one_capacity_counter(shared: AnyRegistry) -> None:
    shared.store("acme").commit(Add(PLACES, 1, limit=2), Check(NodeProvider, SHARED_PROVIDER.id, {"version": 1}))
    shared.store("globex").commit(Add(PLACES, 1, limit=2))
    with pytest.raises(errors.Conflict):
        shared.store("acme").commit(Add(PLACES, 1, limit=2))
    shared.store("acme").commit(Add("capacity/npr_1/small", 1, limit=2))
    for store in (shared.platform(), shared.store("acme"), shared.store("globex")):
        assert [(counter.id, counter.value) for counter in store.list(Counter, prefix="capacity/spr_").items] == [
            (PLACES, 2)
        ]
    shared.store("globex").commit(Add(PLACES, -1))
    counter = shared.platform().get(Counter, PLACES)
    assert counter is not None
    assert counter.value == 1


def test_shared_provider_use_is_recorded_per_tenant(shared: AnyRegistry) -> None:
    for tenant in ("globex", "acme", "acme"):
        shared.store(tenant).commit(Put(Fact(use_of(SHARED_PROVIDER.id, tenant), tenant, "t2")))
    assert [fact.value for fact in shared.platform().list(Fact, prefix=use_of(SHARED_PROVIDER.id)).items] == [
        "acme",
        "globex",
    ]
    assert shared.store("acme").list(Fact).items == []


@pytest.mark.parametrize(
    "write",
    [
        Create(NodeProvider("spr_2", "more", "simulated", {"simulated": {}}, "t1", "t1")),
        Replace(NodeProvider("spr_1", "lab", "simulated", {"simulated": {}}, "t1", "t1", version=2)),
        Remove(NodeProvider, "spr_1"),
        Remove(NodeProvider, "spr_1", version=1),
        Create(Name("shared/node-provider/more", "npr_1")),
        Put(Name("shared/node-provider/lab", "npr_1")),
        Remove(Name, "shared/node-provider/lab"),
        Remove(Counter, PLACES),
        Create(Counter(PLACES, 0)),
        Remove(Fact, use_of(SHARED_PROVIDER.id, "acme")),
        Remove(Fact, use_of(SHARED_PROVIDER.id, "globex")),
        Put(Fact(use_of(SHARED_PROVIDER.id, "globex"), "globex", "t2")),
        Put(Fact(use_of(SHARED_PROVIDER.id, "acme"), "globex", "t2")),
    ],
    ids=lambda write: type(write).__name__,
)
def test_shared_provider_is_read_only_for_tenants(shared: AnyRegistry, write: Write) -> None:
    with pytest.raises(ValueError, match="platform"):
        shared.store("acme").commit(Create(Fact("beside", "x", "t1")), write)
    assert shared.platform().get(NodeProvider, SHARED_PROVIDER.id) == SHARED_PROVIDER
    assert shared.store("acme").get(Fact, "beside") is None
    assert shared.platform().list(Fact, prefix=use_of(SHARED_PROVIDER.id)).items == []
