"""A limit on a type that has nodes already counts each of them once, whatever else happens at the same time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from local.testing.memory_store import MemoryStore
from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.errors import Conflict, InsufficientCapacity, PreconditionFailed, StoreUnavailable, VendorRefused
from stockyard.operations.listing import every
from stockyard.operations.node_providers import limited_types
from stockyard.operations.node_providers.limited_types import counters_of, take_over, take_over_all
from stockyard.operations.node_providers.providers import change_provider, create_provider
from stockyard.operations.node_providers.types import get_type
from stockyard.operations.services import Services
from stockyard.ports import Add, Replace, Write
from tests.harness.sweeping import Reaper
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1}
LARGE: dict[str, Any] = {"name": "large", "resources": {"cpu": "8", "memory": "16Gi"}, "usdPerHour": 0.4}
TWO: dict[str, Any] = {**SMALL, "maxCapacity": 2}


@pytest.fixture
def nodes(world: World) -> Nodes:
    return Nodes.of(world.registry, world.services, world.clock)


def change(services: Services, provider: NodeProvider, *types: dict[str, Any]) -> NodeProvider:
    current = services.store.get(NodeProvider, provider.id)
    assert current is not None
    spec = {"simulated": {"nodeTypes": list(types)}}
    return change_provider(services, provider.id, current.version, {"spec": spec}, "user:ann", "r")


def sweep(nodes: Nodes) -> list[str]:
    done: list[str] = Reaper(nodes.registry, nodes.clock, lambda _: nodes.services).run()["done"]
    return done


def limited_without_count(nodes: Nodes, provider: NodeProvider, *types: dict[str, Any]) -> NodeProvider:
    """Change the document without the count that follows a change."""
    changed: NodeProvider = replace(
        provider, spec={"simulated": {"nodeTypes": list(types)}}, version=provider.version + 1
    )
    nodes.services.store.commit(Replace(changed))
    return changed


def test_new_limit_counts_existing_nodes(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL, LARGE)
    there = [nodes.claim("one"), nodes.claim("two")]
    big = nodes.claim("big", resources={"cpu": "8"})
    nodes.schedule()
    nodes.relay()
    before = [nodes.now(claim) for claim in there]
    change(nodes.services, provider, TWO, LARGE)
    assert get_type(nodes.services, "lab.small")["capacity"] == {
        "total": 2,
        "claimed": 2,
        "available": 0,
        "counted_at": None,
    }
    only = {"requirements": ({"key": "vcluster.com/node-type", "operator": "In", "values": ["small"]},)}
    late = [nodes.claim(name, **only) for name in ("three", "four")]
    nodes.schedule()
    assert nodes.used(provider, "small") == 2
    assert [nodes.now(claim).reason for claim in late] == ["NoCapacity"] * 2
    after = [nodes.now(claim) for claim in there]
    assert [(claim.phase, claim.placement and claim.placement.counted) for claim in after] == [("Available", True)] * 2
    # Nothing else of them has changed: what is timed by ``updated_at``, and what events count by ``sequence``.
    assert [(claim.updated_at, claim.sequence) for claim in after] == [
        (claim.updated_at, claim.sequence) for claim in before
    ]
    assert [claim.version for claim in after] == [claim.version + 1 for claim in before]
    placed = nodes.now(big).placement
    assert placed is not None
    assert not placed.counted
    assert sweep(nodes) == []
    for claim in [*there, *late, big]:
        nodes.delete(claim)
    nodes.relay()
    assert nodes.nothing_left()


def test_limit_below_existing_nodes_makes_available_negative(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    for _ in range(3):
        nodes.claim()
    nodes.schedule()
    change(nodes.services, provider, {**SMALL, "maxCapacity": 1})
    assert get_type(nodes.services, "lab.small")["capacity"] == {
        "total": 1,
        "claimed": 3,
        "available": -2,
        "counted_at": None,
    }


def test_limit_counts_leaving_nodes_and_no_failed_ones(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    failing, leaving = nodes.claim("failing"), nodes.claim("leaving")
    nodes.schedule()
    nodes.errors["launch"] = [VendorRefused("no")]
    nodes.relay()
    assert sorted(nodes.now(claim).phase for claim in (failing, leaving)) == ["Available", "Failed"]
    up = next(claim for claim in (failing, leaving) if nodes.now(claim).phase == "Available")
    nodes.delete(up)
    change(nodes.services, provider, TWO)
    assert nodes.used(provider, "small") == 1
    nodes.relay()
    assert nodes.used(provider, "small") == 0
    nodes.delete(failing if up is leaving else leaving)
    nodes.relay()
    assert nodes.nothing_left()


def test_claim_bound_during_change_is_counted(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = nodes.provider("lab", SMALL)
    nodes.claim("one")
    nodes.schedule()
    looked: list[int] = []

    def racing(services: Services, provider: NodeProvider) -> int:
        looked.append(take_over_all(services, provider))
        if len(looked) == 1:
            nodes.claim("racer")
            nodes.schedule()
        return looked[-1]

    monkeypatch.setattr(limited_types, "take_over_all", racing)
    change(nodes.services, provider, TWO)
    assert (looked, nodes.used(provider, "small")) == ([1, 1], 2)


def test_sweep_counts_nodes_after_failed_count(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = nodes.provider("lab", SMALL)
    nodes.claim("one")
    nodes.schedule()
    looks: list[str] = []

    def broken(services: Services, provider: NodeProvider) -> int:
        looks.append(provider.id)
        if len(looks) == 2:
            raise StoreUnavailable("down")
        return 0

    monkeypatch.setattr(limited_types, "take_over_all", broken)
    assert change(nodes.services, provider, TWO).version == 2
    assert nodes.used(provider, "small") == 0
    assert sweep(nodes) == ["counted 1 nodes of acme"]
    assert (nodes.used(provider, "small"), sweep(nodes)) == (1, [])


def test_change_without_new_limit_reads_no_claim(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = nodes.provider("lab", TWO)
    monkeypatch.setattr(limited_types, "take_over_all", lambda *_: pytest.fail("looked"))
    change(nodes.services, provider, {**SMALL, "maxCapacity": 5})
    change(nodes.services, provider, SMALL)


def test_count_of_refused_change_is_given_back(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    claim = nodes.claim("one")
    nodes.schedule()
    nodes.relay()
    commit = MemoryStore.commit

    def late(self: MemoryStore, *writes: Write) -> None:
        if any(isinstance(write, Replace) and isinstance(write.record, NodeProvider) for write in writes):
            raise Conflict("somebody was first", index=0)
        commit(self, *writes)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MemoryStore, "commit", late)
        with pytest.raises(PreconditionFailed):
            change(nodes.services, provider, TWO)
    assert nodes.used(provider, "small") == 1
    nodes.delete(claim)
    nodes.relay()
    assert nodes.nothing_left()


def test_claim_changed_meanwhile_is_counted_later_and_once(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    for number in range(5):
        nodes.claim(f"n{number}")
    nodes.schedule()
    counters = counters_of(nodes.services, [limited_without_count(nodes, provider, TWO)])
    read = list(every(nodes.services.store, NodeClaim))
    nodes.services.store.commit(Replace(replace(read[1], version=read[1].version + 1)))
    nodes.delete(read[3])
    assert take_over(nodes.services, counters, read) == 3
    assert nodes.used(provider, "small") == 3
    assert take_over(nodes.services, counters, read) == 0
    assert take_over(nodes.services, counters, list(every(nodes.services.store, NodeClaim))) == 2
    assert nodes.used(provider, "small") == 5


def test_many_nodes_are_counted_in_batches(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_types, "BATCH", 3)
    provider = nodes.provider("lab", SMALL)
    for number in range(8):
        nodes.claim(f"n{number}")
    nodes.schedule()
    commit, added = MemoryStore.commit, []

    def recording(self: MemoryStore, *writes: Write) -> None:
        added.extend(write.by for write in writes if isinstance(write, Add) and write.counter.startswith("capacity/"))
        commit(self, *writes)

    monkeypatch.setattr(MemoryStore, "commit", recording)
    change(nodes.services, provider, TWO)
    assert (added, nodes.used(provider, "small")) == ([3, 3, 2], 8)


def test_sweep_counts_uncounted_nodes(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    nodes.claim("one")
    nodes.schedule()
    nodes.relay()
    limited_without_count(nodes, provider, TWO)
    assert sweep(nodes) == ["counted 1 nodes of acme"]
    assert (nodes.used(provider, "small"), sweep(nodes)) == (1, [])


def test_limit_of_shared_type_counts_nodes_of_all_tenants(nodes: Nodes) -> None:
    def services(tenant: str) -> Services:
        if tenant == PLATFORM:
            return replace(nodes.services, store=nodes.registry.platform(), services_of=services)
        return replace(nodes.services, store=nodes.registry.store(tenant))

    platform = services(PLATFORM)
    provider = create_provider(platform, ProviderDocument("lab", "simulated", {"nodeTypes": [SMALL]}), "user:root")
    having = [replace(nodes, services=services(tenant)) for tenant in ("acme", "globex")]
    for tenant_nodes in having:
        tenant_nodes.claim("first")
        tenant_nodes.schedule()
    changed = change(platform, provider, TWO)
    assert nodes.used(changed, "small") == 2
    late = having[0].claim("late")
    having[0].schedule()
    assert having[0].now(late).reason == "NoCapacity"
    for tenant_nodes in having:
        for claim in list(every(tenant_nodes.services.store, NodeClaim)):
            tenant_nodes.delete(claim)
        tenant_nodes.relay()
    assert nodes.used(changed, "small") == 0


@pytest.mark.parametrize("ending", ["up", "refused", "another"])
def test_node_launched_during_new_limit_is_counted_once(nodes: Nodes, ending: str) -> None:
    """The claim is counted while a worker still holds its earlier record."""
    provider = nodes.provider("lab", SMALL, LARGE)
    claim = nodes.claim("one")
    nodes.schedule()
    source = nodes.services.node_sources["simulated"]

    counters: list[int] = []

    class Limiting:
        """The simulated source, whose type is limited during its first launch."""

        def __getattr__(self, name: str) -> Any:
            return getattr(source, name)

        def launch(self, work: Any) -> Any:
            if not counters:
                change(nodes.services, provider, TWO, LARGE)
                counters.append(nodes.used(provider, "small"))
                if ending == "refused":
                    raise InsufficientCapacity("none left")
            outcome = source.launch(work)
            return replace(outcome, facts={**outcome.facts, "type": "lab.large"}) if ending == "another" else outcome

    nodes.services = with_ports(nodes.services, node_sources={"simulated": Limiting()})
    nodes.relay()
    assert counters == [1]
    if ending == "refused":
        assert (nodes.now(claim).placement, nodes.used(provider, "small")) == (None, 0)
    else:
        placed = nodes.now(claim).placement
        assert placed is not None
        same_type = ending == "up"
        assert (nodes.now(claim).phase, placed.counted, nodes.used(provider, "small")) == (
            "Available",
            same_type,
            int(same_type),
        )
    nodes.delete(claim)
    nodes.relay()
    assert nodes.nothing_left()
