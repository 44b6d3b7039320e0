"""What the platform shares: every tenant's store reads it and takes places of it, and none can change it."""

from __future__ import annotations

import pytest

from local.memory_store import MemoryRegistry
from stockyard import errors
from stockyard.adapters.dynamodb.registry import DynamoRegistry
from stockyard.domain.platform import SHARED, use_of
from stockyard.domain.records import Counter, Fact, Name, NodeProvider
from stockyard.ports import Add, Check, Create, Put, Remove, Replace, Write

AnyRegistry = MemoryRegistry | DynamoRegistry
OURS = NodeProvider("spr_1", "lab", "simulated", {"simulated": {}}, "t1", "t1")
THEIRS = NodeProvider("npr_1", "own", "simulated", {"simulated": {}}, "t1", "t1")
PLACES = "capacity/spr_1/small"


@pytest.fixture
def shared(registry: AnyRegistry) -> AnyRegistry:
    registry.platform().commit(Create(OURS), Create(Name("shared/node-provider/lab", OURS.id)))
    registry.store("acme").commit(Create(THEIRS))
    return registry


def test_every_tenant_reads_it_by_its_id(shared: AnyRegistry) -> None:
    for store in (shared.platform(), shared.store("acme"), shared.store("globex")):
        assert store.get(NodeProvider, OURS.id) == OURS
        assert store.list(NodeProvider, prefix=SHARED).items == [OURS]
        found = store.get(Name, "shared/node-provider/lab")
        assert found is not None
        assert found.owner == OURS.id


def test_a_tenants_own_list_does_not_have_it(shared: AnyRegistry) -> None:
    assert shared.store("acme").list(NodeProvider).items == [THEIRS]
    assert shared.store("globex").list(NodeProvider).items == []
    assert shared.platform().list(NodeProvider).items == [OURS]
    assert sorted((tenant, one.id) for tenant, one in shared.all(NodeProvider)) == [
        ("_platform", "spr_1"),
        ("acme", "npr_1"),
    ]


def test_its_places_are_counted_together(shared: AnyRegistry) -> None:
    shared.store("acme").commit(Add(PLACES, 1, limit=2), Check(NodeProvider, OURS.id, {"version": 1}))
    shared.store("globex").commit(Add(PLACES, 1, limit=2))
    with pytest.raises(errors.Conflict):
        shared.store("acme").commit(Add(PLACES, 1, limit=2))
    shared.store("acme").commit(Add("capacity/npr_1/small", 1, limit=2))
    for store in (shared.platform(), shared.store("acme"), shared.store("globex")):
        assert [(one.id, one.value) for one in store.list(Counter, prefix="capacity/spr_").items] == [(PLACES, 2)]
    shared.store("globex").commit(Add(PLACES, -1))
    counter = shared.platform().get(Counter, PLACES)
    assert counter is not None
    assert counter.value == 1


def test_tenants_say_that_they_use_it(shared: AnyRegistry) -> None:
    for tenant in ("globex", "acme", "acme"):
        shared.store(tenant).commit(Put(Fact(use_of(OURS.id, tenant), tenant, "t2")))
    assert [one.value for one in shared.platform().list(Fact, prefix=use_of(OURS.id)).items] == ["acme", "globex"]
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
        Remove(Fact, use_of(OURS.id, "acme")),
        Remove(Fact, use_of(OURS.id, "globex")),
        Put(Fact(use_of(OURS.id, "globex"), "globex", "t2")),
        Put(Fact(use_of(OURS.id, "acme"), "globex", "t2")),
    ],
    ids=lambda one: type(one).__name__,
)
def test_no_tenant_writes_it(shared: AnyRegistry, write: Write) -> None:
    with pytest.raises(ValueError, match="platform"):
        shared.store("acme").commit(Create(Fact("beside", "x", "t1")), write)
    assert shared.platform().get(NodeProvider, OURS.id) == OURS
    assert shared.store("acme").get(Fact, "beside") is None
    assert shared.platform().list(Fact, prefix=use_of(OURS.id)).items == []
