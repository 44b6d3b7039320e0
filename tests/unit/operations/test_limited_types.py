"""A type that is limited when it has nodes already: they are counted, once each, whatever happens meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from local.memory_store import MemoryStore
from stockyard.domain.manifests import ProviderDocument
from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.errors import Conflict, InsufficientCapacity, PreconditionFailed, StoreUnavailable, VendorRefused
from stockyard.operations import limited_types
from stockyard.operations.every import every
from stockyard.operations.limited_types import counters_of, take_over, take_over_all
from stockyard.operations.node_providers import change_provider, create_provider
from stockyard.operations.node_types import get_type
from stockyard.operations.reap import Reaper
from stockyard.operations.services import Services
from stockyard.ports import Add, Replace, Write
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1}
LARGE: dict[str, Any] = {"name": "large", "resources": {"cpu": "8", "memory": "16Gi"}, "usdPerHour": 0.4}
TWO: dict[str, Any] = {**SMALL, "maxCapacity": 2}


@pytest.fixture
def nodes(world: World) -> Nodes:
    return Nodes.of(world.registry, world.services, world.clock)


def change(services: Services, made: NodeProvider, *types: dict[str, Any]) -> NodeProvider:
    current = services.store.get(NodeProvider, made.id)
    assert current is not None
    spec = {"simulated": {"nodeTypes": list(types)}}
    return change_provider(services, made.id, current.version, {"spec": spec}, "user:ann", "r")


def sweep(nodes: Nodes) -> list[str]:
    done: list[str] = Reaper(nodes.registry, nodes.clock, lambda _: nodes.services).run()["done"]
    return done


def limited_behind_its_back(nodes: Nodes, made: NodeProvider, *types: dict[str, Any]) -> NodeProvider:
    """The document as a change leaves it that no pass and no sweep has followed yet."""
    changed: NodeProvider = replace(made, spec={"simulated": {"nodeTypes": list(types)}}, version=made.version + 1)
    nodes.services.store.commit(Replace(changed))
    return changed


def test_a_limit_that_comes_later_counts_the_nodes_that_are_there(nodes: Nodes) -> None:
    made = nodes.provider("lab", SMALL, LARGE)
    there = [nodes.claim("one"), nodes.claim("two")]
    big = nodes.claim("big", resources={"cpu": "8"})
    nodes.schedule()
    nodes.relay()
    before = [nodes.now(claim) for claim in there]
    change(nodes.services, made, TWO, LARGE)
    assert get_type(nodes.services, "lab.small")["capacity"] == {"total": 2, "claimed": 2, "available": 0}
    only = {"requirements": ({"key": "vcluster.com/node-type", "operator": "In", "values": ["small"]},)}
    late = [nodes.claim(name, **only) for name in ("three", "four")]
    nodes.schedule()
    assert nodes.used(made, "small") == 2
    assert [nodes.now(claim).reason for claim in late] == ["NoCapacity"] * 2
    after = [nodes.now(claim) for claim in there]
    assert [(one.phase, one.placement and one.placement.counted) for one in after] == [("Available", True)] * 2
    # Nothing else of them has changed: what is timed by ``updated_at``, and what events count by ``sequence``.
    assert [(one.updated_at, one.sequence) for one in after] == [(one.updated_at, one.sequence) for one in before]
    assert [one.version for one in after] == [one.version + 1 for one in before]
    placed = nodes.now(big).placement
    assert placed is not None
    assert not placed.counted
    assert sweep(nodes) == []
    for claim in [*there, *late, big]:
        nodes.delete(claim)
    nodes.relay()
    assert nodes.nothing_left()


def test_a_limit_below_what_is_there_makes_available_negative(nodes: Nodes) -> None:
    made = nodes.provider("lab", SMALL)
    for _ in range(3):
        nodes.claim()
    nodes.schedule()
    change(nodes.services, made, {**SMALL, "maxCapacity": 1})
    assert get_type(nodes.services, "lab.small")["capacity"] == {"total": 1, "claimed": 3, "available": -2}


def test_a_node_on_its_way_out_counts_until_it_is_gone_and_a_failed_one_never(nodes: Nodes) -> None:
    made = nodes.provider("lab", SMALL)
    failing, leaving = nodes.claim("failing"), nodes.claim("leaving")
    nodes.schedule()
    nodes.errors["launch"] = [VendorRefused("no")]
    nodes.relay()
    assert sorted(nodes.now(claim).phase for claim in (failing, leaving)) == ["Available", "Failed"]
    up = next(claim for claim in (failing, leaving) if nodes.now(claim).phase == "Available")
    nodes.delete(up)
    change(nodes.services, made, TWO)
    assert nodes.used(made, "small") == 1
    nodes.relay()
    assert nodes.used(made, "small") == 0
    nodes.delete(failing if up is leaving else leaving)
    nodes.relay()
    assert nodes.nothing_left()


def test_a_claim_that_is_bound_during_the_change_is_counted_right_after_it(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = nodes.provider("lab", SMALL)
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
    change(nodes.services, made, TWO)
    assert (looked, nodes.used(made, "small")) == ([1, 1], 2)


def test_what_cannot_be_counted_after_the_change_is_left_to_the_sweep(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = nodes.provider("lab", SMALL)
    nodes.claim("one")
    nodes.schedule()
    looks: list[str] = []

    def broken(services: Services, provider: NodeProvider) -> int:
        looks.append(provider.id)
        if len(looks) == 2:
            raise StoreUnavailable("down")
        return 0

    monkeypatch.setattr(limited_types, "take_over_all", broken)
    assert change(nodes.services, made, TWO).version == 2
    assert nodes.used(made, "small") == 0
    assert sweep(nodes) == ["counted 1 nodes of acme"]
    assert (nodes.used(made, "small"), sweep(nodes)) == (1, [])


def test_a_change_that_limits_nothing_more_looks_at_no_claim(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    made = nodes.provider("lab", TWO)
    monkeypatch.setattr(limited_types, "take_over_all", lambda *_: pytest.fail("looked"))
    change(nodes.services, made, {**SMALL, "maxCapacity": 5})
    change(nodes.services, made, SMALL)


def test_a_change_that_lost_its_race_leaves_nothing_that_is_not_given_back(nodes: Nodes) -> None:
    made = nodes.provider("lab", SMALL)
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
            change(nodes.services, made, TWO)
    assert nodes.used(made, "small") == 1
    nodes.delete(claim)
    nodes.relay()
    assert nodes.nothing_left()


def test_a_claim_that_changed_meanwhile_is_left_to_the_next_look_and_none_is_counted_twice(nodes: Nodes) -> None:
    made = nodes.provider("lab", SMALL)
    for number in range(5):
        nodes.claim(f"n{number}")
    nodes.schedule()
    counters = counters_of([limited_behind_its_back(nodes, made, TWO)])
    read = list(every(nodes.services.store, NodeClaim))
    nodes.services.store.commit(Replace(replace(read[1], version=read[1].version + 1)))
    nodes.delete(read[3])
    assert take_over(nodes.services, counters, read) == 3
    assert nodes.used(made, "small") == 3
    assert take_over(nodes.services, counters, read) == 0
    assert take_over(nodes.services, counters, list(every(nodes.services.store, NodeClaim))) == 2
    assert nodes.used(made, "small") == 5


def test_many_nodes_are_counted_in_several_transactions(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_types, "BATCH", 3)
    made = nodes.provider("lab", SMALL)
    for number in range(8):
        nodes.claim(f"n{number}")
    nodes.schedule()
    commit, added = MemoryStore.commit, []

    def seen(self: MemoryStore, *writes: Write) -> None:
        added.extend(one.by for one in writes if isinstance(one, Add) and one.counter.startswith("capacity/"))
        commit(self, *writes)

    monkeypatch.setattr(MemoryStore, "commit", seen)
    change(nodes.services, made, TWO)
    assert (added, nodes.used(made, "small")) == ([3, 3, 2], 8)


def test_the_sweep_counts_what_came_past_the_limit(nodes: Nodes) -> None:
    made = nodes.provider("lab", SMALL)
    nodes.claim("one")
    nodes.schedule()
    nodes.relay()
    limited_behind_its_back(nodes, made, TWO)
    assert sweep(nodes) == ["counted 1 nodes of acme"]
    assert (nodes.used(made, "small"), sweep(nodes)) == (1, [])


def test_nodes_of_every_tenant_are_counted_for_a_shared_type(nodes: Nodes) -> None:
    def services(tenant: str) -> Services:
        if tenant == PLATFORM:
            return replace(nodes.services, store=nodes.registry.platform(), of=services)
        return replace(nodes.services, store=nodes.registry.store(tenant))

    platform = services(PLATFORM)
    made = create_provider(platform, ProviderDocument("lab", "simulated", {"nodeTypes": [SMALL]}), "user:root")
    having = [replace(nodes, services=services(tenant)) for tenant in ("acme", "globex")]
    for one in having:
        one.claim("first")
        one.schedule()
    changed = change(platform, made, TWO)
    assert nodes.used(changed, "small") == 2
    late = having[0].claim("late")
    having[0].schedule()
    assert having[0].now(late).reason == "NoCapacity"
    for one in having:
        for claim in list(every(one.services.store, NodeClaim)):
            one.delete(claim)
        one.relay()
    assert nodes.used(changed, "small") == 0


@pytest.mark.parametrize("ending", ["up", "refused", "another"])
def test_a_type_that_is_limited_while_its_node_is_made_counts_it_once(nodes: Nodes, ending: str) -> None:
    """The claim is counted while a worker holds the record that was read before."""
    made = nodes.provider("lab", SMALL, LARGE)
    claim = nodes.claim("one")
    nodes.schedule()
    source = nodes.services.sources["simulated"]

    counters: list[int] = []

    class Limiting:
        """Stands for the source; its first launch sees the type limited before it answers."""

        def __getattr__(self, name: str) -> Any:
            return getattr(source, name)

        def launch(self, work: Any) -> Any:
            if not counters:
                change(nodes.services, made, TWO, LARGE)
                counters.append(nodes.used(made, "small"))
                if ending == "refused":
                    raise InsufficientCapacity("none left")
            outcome = source.launch(work)
            return replace(outcome, facts={**outcome.facts, "type": "lab.large"}) if ending == "another" else outcome

    nodes.services = replace(nodes.services, sources={"simulated": Limiting()})  # type: ignore[dict-item]
    nodes.relay()
    assert counters == [1]
    if ending == "refused":
        assert (nodes.now(claim).placement, nodes.used(made, "small")) == (None, 0)
    else:
        placed = nodes.now(claim).placement
        assert placed is not None
        same = ending == "up"
        assert (nodes.now(claim).phase, placed.counted, nodes.used(made, "small")) == ("Available", same, int(same))
    nodes.delete(claim)
    nodes.relay()
    assert nodes.nothing_left()
