"""What a pass looks at when more claims wait than it reads: no tenant's claims keep another's from their turn."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from local.memory_store import MemoryRegistry, MemoryStore
from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import Fact, NodeClaim
from stockyard.errors import StoreUnavailable
from stockyard.operations import waiting_claims, wake_scheduler
from stockyard.operations.waiting_claims import SCHEDULED, Waiting
from stockyard.ports import Put
from tests.unit.operations.conftest import World
from tests.unit.operations.installation import ONE, Installation
from tests.unit.operations.nodes import Nodes

MOST = 5
HEAPS = ("heap-1", "heap-2", "heap-3")
ROUND = 8
"""Passes that a round over the heaps and one more tenant takes at most: each reads on from the last moment it saw."""
HUGE = {"cpu": "4000"}
NOTHING: Mapping[str, Any] = {"bound": 0, "waiting": 0, "lost": 0, "left": 0}


@pytest.fixture
def them(world: World, monkeypatch: pytest.MonkeyPatch) -> Installation:
    monkeypatch.setattr(wake_scheduler, "OLDER", MOST)
    monkeypatch.setattr(wake_scheduler, "OVERDUE", MOST)
    monkeypatch.setattr(waiting_claims, "EACH", 1)
    return Installation(Nodes.of(world.registry, world.services, world.clock))


def claim(nodes: Nodes, name: str = "", **fields: Any) -> NodeClaim:
    """A claim that came a moment after the one before."""
    nodes.clock.advance(0.001)
    return nodes.claim(name, **fields)


def heaps(them: Installation, count: int = MOST, tenants: tuple[str, ...] = HEAPS) -> None:
    """Tenants whose claims nothing ever fits, at the head of the index, one tenant's between those of the others."""
    for _ in range(count):
        for tenant in tenants:
            claim(them.of(tenant), resources=HUGE)


def full(them: Installation, tenant: str = "acme") -> tuple[Nodes, NodeClaim]:
    """A tenant whose only place is taken by this claim."""
    nodes = them.of(tenant)
    nodes.provider("lab", ONE)
    having = claim(nodes, "having")
    nodes.schedule(having)
    nodes.relay()
    assert nodes.now(having).phase == "Available"
    return nodes, having


def pass_(them: Installation) -> Mapping[str, int]:
    return them.scheduler().overdue(them.nodes.clock.advance(60))


def reads(registry: MemoryRegistry, them: Installation) -> set[str]:
    """The tenants that the next pass of the schedule looks at."""
    waiting = Waiting(registry)
    waiting.read_in_turn(them.nodes.clock.advance(60), MOST, SCHEDULED)
    return set(waiting.by_tenant)


def test_a_place_goes_to_ones_own_older_claim_whatever_others_wait_for(them: Installation) -> None:
    acme, having = full(them)
    heaps(them)
    low, older, younger = (claim(acme, name, priority=p) for name, p in (("low", 0), ("older", 1), ("younger", 1)))
    acme.delete(having)
    acme.relay()
    stream = [("acme", younger)]
    assert them.scheduler().woken(stream, them.nodes.clock.advance(0.001))["bound"] == 1
    placed = {one.name: acme.now(one).type_ref for one in (low, older, younger)}
    assert placed == {"low": "", "older": "lab.small", "younger": ""}


def test_room_in_a_tenant_reaches_it_whatever_others_wait_for(them: Installation) -> None:
    acme, having = full(them)
    heaps(them)
    waits = claim(acme, "waits")
    acme.delete(having)
    acme.relay()
    assert them.woken("globex") == 0
    assert them.woken("acme") == 1
    assert acme.now(waits).type_ref == "lab.small"


def test_the_schedule_reaches_every_tenant_one_after_the_other(them: Installation) -> None:
    heaps(them)
    acme = them.of("acme")
    acme.provider("lab", ONE)
    waits = claim(acme, "waits")
    assert sum(pass_(them)["bound"] for _ in range(ROUND)) == 1
    assert acme.now(waits).type_ref == "lab.small"


def test_a_tenants_turn_is_all_that_it_waits_for_in_fair_order(them: Installation) -> None:
    acme, having = full(them)
    older = claim(acme, "older")
    heaps(them)
    urgent = claim(acme, "urgent", priority=9)
    acme.delete(having)
    acme.relay()
    assert pass_(them)["bound"] == 1, "the older one is at the head; the younger is far behind it"
    assert (acme.now(older).type_ref, acme.now(urgent).type_ref) == ("", "lab.small")


def test_each_tenant_has_one_turn_in_a_round_however_much_it_waits_for(them: Installation) -> None:
    heaps(them, 3 * MOST)
    for name in ("acme", "globex"):
        claim(them.of(name))
    registry = them.nodes.registry
    seen = [reads(registry, them) for _ in range(40)]
    first = seen[: next(at for at, one in enumerate(seen) if "globex" in one) + 1]
    assert sorted(tenant for one in first for tenant in one) == sorted((*HEAPS, "acme", "globex"))
    assert len(first) <= (9 * MOST + 2) // (MOST - 1) + len(HEAPS), "the index is read once in a round"
    assert sum("globex" in one for one in seen) >= 2, "and then another round begins"


def test_what_comes_during_a_round_does_not_make_it_endless(them: Installation) -> None:
    heaps(them)
    registry = them.nodes.registry
    assert reads(registry, them) == {HEAPS[0]}
    again = False
    for _ in range(10):
        for _ in range(MOST):
            claim(them.of("late"), resources=HUGE)
        again |= HEAPS[0] in reads(registry, them)
    assert again


def test_claims_of_one_moment_are_all_reached(them: Installation) -> None:
    names = [f"tenant-{number}" for number in range(MOST - 1)]
    for name in names:
        them.of(name).claim()
    heaps(them, tenants=("heap",))
    registry = them.nodes.registry
    seen = [reads(registry, them) for _ in range(4)]
    assert set().union(*seen) == {*names, "heap"}


def test_more_claims_of_one_moment_than_a_pass_reads_do_not_stop_a_round(them: Installation) -> None:
    for _ in range(2 * MOST):
        them.of("heap").claim(resources=HUGE)
    claim(them.of("acme"))
    registry = them.nodes.registry
    assert [reads(registry, them) for _ in range(3)] == [{"heap"}, set(), {"acme"}]


def test_a_pass_has_few_tenants_however_little_each_waits_for(
    them: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_claims, "EACH", 2)
    names = [f"tenant-{number}" for number in range(MOST)]
    for name in names:
        claim(them.of(name))
    registry = them.nodes.registry
    assert [reads(registry, them) for _ in range(2)] == [set(names[:3]), set(names[3:])]


def test_a_round_that_remembers_too_many_tenants_goes_on_all_the_same(
    them: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_claims, "REMEMBERED", 1)
    heaps(them)
    claim(them.of("acme"))
    registry = them.nodes.registry
    assert "acme" in set().union(*(reads(registry, them) for _ in range(5 * MOST)))


def test_once_little_waits_all_of_it_is_read_each_minute(them: Installation) -> None:
    heaps(them, tenants=("heap",))
    one = claim(them.of("acme"))
    registry = them.nodes.registry
    assert [reads(registry, them) for _ in range(2)] == [{"heap"}, {"acme"}]
    them.of("acme").delete(one)
    for other in them.services("heap").store.list(NodeClaim).items[1:]:
        them.of("heap").delete(other)
    claim(them.of("globex"))
    assert [reads(registry, them) for _ in range(3)] == [{"heap", "globex"}] * 3


def test_a_tenant_that_cannot_be_read_keeps_none_of_the_others(
    them: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    heaps(them)
    acme = them.of("acme")
    acme.provider("lab", ONE)
    waits = claim(acme, "waits")
    page = MemoryStore.list

    def broken(self: MemoryStore, kind: Any, **more: Any) -> Any:
        if (self.tenant, kind) == (HEAPS[0], NodeClaim):
            raise StoreUnavailable("down")
        return page(self, kind, **more)

    monkeypatch.setattr(MemoryStore, "list", broken)
    with pytest.raises(StoreUnavailable):
        pass_(them)
    for _ in range(ROUND):
        with suppress(StoreUnavailable):
            pass_(them)
    assert acme.now(waits).type_ref == "lab.small"


def test_two_that_go_on_with_one_round_do_not_put_it_back(them: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    heaps(them)
    registry, platform = them.nodes.registry, them.nodes.registry.platform()
    due = MemoryRegistry.due

    def meanwhile(*given: Any) -> Any:
        monkeypatch.setattr(MemoryRegistry, "due", due)
        assert reads(registry, them) == {HEAPS[0]}
        return due(*given)

    monkeypatch.setattr(MemoryRegistry, "due", meanwhile)
    assert reads(registry, them) == {HEAPS[0]}
    kept = platform.get(Fact, SCHEDULED)
    assert kept is not None
    assert kept.version == 1
    assert reads(registry, them) == {HEAPS[1]}


def test_a_shared_place_is_offered_to_tenants_in_turn(them: Installation) -> None:
    heaps(them)
    waits = claim(them.of("zeta"), "waits")
    them.share()
    assert sum(them.woken(PLATFORM) for _ in range(ROUND)) == 1
    assert them.of("zeta").now(waits).type_ref == "lab.small"
    assert them.nodes.registry.platform().get(Fact, SCHEDULED) is None, "the schedule has its own round"


def test_a_round_whose_claims_are_gone_is_over(them: Installation) -> None:
    now = them.nodes.services.now()
    value = f'{{"since": "{now}", "served": []}}'
    them.nodes.registry.platform().commit(Put(Fact(SCHEDULED, value, now)))
    assert pass_(them) == NOTHING
    kept = them.nodes.registry.platform().get(Fact, SCHEDULED)
    assert kept is not None
    assert (kept.value, kept.version) == ("", 2)
