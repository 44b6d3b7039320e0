"""Claims that a pass reads when more wait than it can read: every tenant gets its turn."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from local.testing.memory_store import MemoryRegistry, MemoryStore
from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import Fact, NodeClaim
from stockyard.errors import StoreUnavailable
from stockyard.operations.scheduler import waiting as waiting_claims
from stockyard.operations.scheduler import wake as wake_scheduler
from stockyard.operations.scheduler.waiting import SCHEDULED, Waiting
from stockyard.ports import Put
from tests.unit.operations.conftest import World
from tests.unit.operations.installation import LIMITED_TO_ONE, Installation
from tests.unit.operations.nodes import Nodes

MOST = 5
HEAPS = ("heap-1", "heap-2", "heap-3")
ROUND = 8
"""The most passes of a round over the backlog and one more tenant; each continues after the last claim it has read."""
HUGE = {"cpu": "4000"}
NOTHING: Mapping[str, Any] = {"bound": 0, "waiting": 0, "lost": 0, "left": 0}


@pytest.fixture
def installation(world: World, monkeypatch: pytest.MonkeyPatch) -> Installation:
    monkeypatch.setattr(wake_scheduler, "OLDER", MOST)
    monkeypatch.setattr(wake_scheduler, "OVERDUE", MOST)
    monkeypatch.setattr(waiting_claims, "EACH", 1)
    return Installation(Nodes.of(world.registry, world.services, world.clock))


def claim(nodes: Nodes, name: str = "", **fields: Any) -> NodeClaim:
    """Create a claim that is younger than all before it."""
    nodes.clock.advance(0.001)
    return nodes.claim(name, **fields)


def add_backlog(installation: Installation, count: int = MOST, tenants: tuple[str, ...] = HEAPS) -> None:
    """Add claims that never fit at the head of the index, taking turns between the tenants."""
    for _ in range(count):
        for tenant in tenants:
            claim(installation.of(tenant), resources=HUGE)


def tenant_at_capacity(installation: Installation, tenant: str = "acme") -> tuple[Nodes, NodeClaim]:
    """A tenant whose only slot is taken by the returned claim."""
    nodes = installation.of(tenant)
    nodes.provider("lab", LIMITED_TO_ONE)
    having = claim(nodes, "having")
    nodes.schedule(having)
    nodes.relay()
    assert nodes.now(having).phase == "Available"
    return nodes, having


def run_scheduled_pass(installation: Installation) -> Mapping[str, int]:
    return installation.scheduler().overdue(installation.nodes.clock.advance(60))


def tenants_read(registry: MemoryRegistry, installation: Installation) -> set[str]:
    """The tenants whose claims the next scheduled pass reads."""
    waiting = Waiting(registry)
    waiting.read_round_robin(installation.nodes.clock.advance(60), MOST, SCHEDULED)
    return set(waiting.by_tenant)


def test_freed_capacity_goes_to_older_claim_of_same_tenant(installation: Installation) -> None:
    acme, having = tenant_at_capacity(installation)
    add_backlog(installation)
    low, older, younger = (claim(acme, name, priority=p) for name, p in (("low", 0), ("older", 1), ("younger", 1)))
    acme.delete(having)
    acme.relay()
    stream = [("acme", younger)]
    assert installation.scheduler().woken(stream, installation.nodes.clock.advance(0.001))["bound"] == 1
    placed = {record.name: acme.now(record).type_ref for record in (low, older, younger)}
    assert placed == {"low": "", "older": "lab.small", "younger": ""}


def test_room_in_tenant_reaches_its_claim_despite_backlog_of_others(installation: Installation) -> None:
    acme, having = tenant_at_capacity(installation)
    add_backlog(installation)
    waits = claim(acme, "waits")
    acme.delete(having)
    acme.relay()
    assert installation.woken("globex") == 0
    assert installation.woken("acme") == 1
    assert acme.now(waits).type_ref == "lab.small"


def test_scheduled_passes_reach_every_tenant(installation: Installation) -> None:
    add_backlog(installation)
    acme = installation.of("acme")
    acme.provider("lab", LIMITED_TO_ONE)
    waits = claim(acme, "waits")
    assert sum(run_scheduled_pass(installation)["bound"] for _ in range(ROUND)) == 1
    assert acme.now(waits).type_ref == "lab.small"


def test_turn_of_tenant_includes_all_its_claims_by_priority(installation: Installation) -> None:
    acme, having = tenant_at_capacity(installation)
    older = claim(acme, "older")
    add_backlog(installation)
    urgent = claim(acme, "urgent", priority=9)
    acme.delete(having)
    acme.relay()
    assert run_scheduled_pass(installation)["bound"] == 1, "the older one is at the head; the younger is far behind it"
    assert (acme.now(older).type_ref, acme.now(urgent).type_ref) == ("", "lab.small")


def test_each_tenant_has_one_turn_in_a_round(installation: Installation) -> None:
    add_backlog(installation, 3 * MOST)
    for name in ("acme", "globex"):
        claim(installation.of(name))
    registry = installation.nodes.registry
    passes = [tenants_read(registry, installation) for _ in range(40)]
    first = passes[: next(at for at, tenants in enumerate(passes) if "globex" in tenants) + 1]
    assert sorted(tenant for tenants in first for tenant in tenants) == sorted((*HEAPS, "acme", "globex"))
    assert len(first) <= (9 * MOST + 2) // (MOST - 1) + len(HEAPS), "the index is read once in a round"
    assert sum("globex" in tenants for tenants in passes) >= 2, "and then another round begins"


def test_round_ends_although_new_claims_arrive(installation: Installation) -> None:
    add_backlog(installation)
    registry = installation.nodes.registry
    assert tenants_read(registry, installation) == {HEAPS[0]}
    again = False
    for _ in range(10):
        for _ in range(MOST):
            claim(installation.of("late"), resources=HUGE)
        again |= HEAPS[0] in tenants_read(registry, installation)
    assert again


def test_claims_of_same_time_are_all_reached(installation: Installation) -> None:
    names = [f"tenant-{number}" for number in range(MOST - 1)]
    for name in names:
        installation.of(name).claim()
    add_backlog(installation, tenants=("heap",))
    registry = installation.nodes.registry
    passes = [tenants_read(registry, installation) for _ in range(4)]
    assert set().union(*passes) == {*names, "heap"}


def test_more_claims_of_same_time_than_a_pass_reads_do_not_stop_round(installation: Installation) -> None:
    for _ in range(2 * MOST):
        installation.of("heap").claim(resources=HUGE)
    claim(installation.of("acme"))
    registry = installation.nodes.registry
    assert [tenants_read(registry, installation) for _ in range(3)] == [{"heap"}, set(), {"acme"}]


def test_pass_serves_limited_number_of_tenants(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_claims, "EACH", 2)
    names = [f"tenant-{number}" for number in range(MOST)]
    for name in names:
        claim(installation.of(name))
    registry = installation.nodes.registry
    assert [tenants_read(registry, installation) for _ in range(2)] == [set(names[:3]), set(names[3:])]


def test_round_continues_beyond_limit_of_remembered_tenants(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_claims, "REMEMBERED", 1)
    add_backlog(installation)
    claim(installation.of("acme"))
    registry = installation.nodes.registry
    assert "acme" in set().union(*(tenants_read(registry, installation) for _ in range(5 * MOST)))


def test_short_backlog_is_read_by_every_pass(installation: Installation) -> None:
    add_backlog(installation, tenants=("heap",))
    acme_claim = claim(installation.of("acme"))
    registry = installation.nodes.registry
    assert [tenants_read(registry, installation) for _ in range(2)] == [{"heap"}, {"acme"}]
    installation.of("acme").delete(acme_claim)
    for heap_claim in installation.services("heap").store.list(NodeClaim).items[1:]:
        installation.of("heap").delete(heap_claim)
    claim(installation.of("globex"))
    assert [tenants_read(registry, installation) for _ in range(3)] == [{"heap", "globex"}] * 3


def test_passes_continue_after_unreadable_tenant(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    add_backlog(installation)
    acme = installation.of("acme")
    acme.provider("lab", LIMITED_TO_ONE)
    waits = claim(acme, "waits")
    page = MemoryStore.list

    def broken(self: MemoryStore, kind: Any, **more: Any) -> Any:
        if (self.tenant, kind) == (HEAPS[0], NodeClaim):
            raise StoreUnavailable("down")
        return page(self, kind, **more)

    monkeypatch.setattr(MemoryStore, "list", broken)
    with pytest.raises(StoreUnavailable):
        run_scheduled_pass(installation)
    for _ in range(ROUND):
        with suppress(StoreUnavailable):
            run_scheduled_pass(installation)
    assert acme.now(waits).type_ref == "lab.small"


def test_concurrent_pass_does_not_reset_round(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    add_backlog(installation)
    registry, platform = installation.nodes.registry, installation.nodes.registry.platform()
    due = MemoryRegistry.due

    def meanwhile(*args: Any) -> Any:
        monkeypatch.setattr(MemoryRegistry, "due", due)
        assert tenants_read(registry, installation) == {HEAPS[0]}
        return due(*args)

    monkeypatch.setattr(MemoryRegistry, "due", meanwhile)
    assert tenants_read(registry, installation) == {HEAPS[0]}
    round_fact = platform.get(Fact, SCHEDULED)
    assert round_fact is not None
    assert round_fact.version == 1
    assert tenants_read(registry, installation) == {HEAPS[1]}


def test_shared_capacity_is_offered_to_tenants_in_turn(installation: Installation) -> None:
    add_backlog(installation)
    waits = claim(installation.of("zeta"), "waits")
    installation.share()
    assert sum(installation.woken(PLATFORM) for _ in range(ROUND)) == 1
    assert installation.of("zeta").now(waits).type_ref == "lab.small"
    assert installation.nodes.registry.platform().get(Fact, SCHEDULED) is None, "the schedule has its own round"


def test_round_without_claims_ends(installation: Installation) -> None:
    now = installation.nodes.services.now()
    value = f'{{"since": "{now}", "served": []}}'
    installation.nodes.registry.platform().commit(Put(Fact(SCHEDULED, value, now)))
    assert run_scheduled_pass(installation) == NOTHING
    round_fact = installation.nodes.registry.platform().get(Fact, SCHEDULED)
    assert round_fact is not None
    assert (round_fact.value, round_fact.version) == ("", 2)
