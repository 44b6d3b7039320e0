"""Places of a quiet tenant are swept once an hour; one where anything is to be watched, each time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from stockyard.domain.clusters.change import ClusterChange, Expiry
from stockyard.domain.nodes.node_types import CAPACITY_BLOCK, SPOT
from stockyard.domain.nodes.records import Placement
from stockyard.domain.records import Cluster, Event, NodeClaim
from stockyard.domain.values import times
from stockyard.lifecycle import sweeping
from stockyard.operations.clusters.changes.change import change_cluster
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.listing import every
from stockyard.operations.sweep.quiet import is_calm
from stockyard.operations.sweep.tally import Tally
from tests.harness.sweeping import Reaper
from tests.unit.operations.conftest import World, make_world

MINUTE = 60


@pytest.fixture
def quiet() -> tuple[World, Reaper]:
    """A tenant with two ready clusters, an hour and a half after its last event, swept all the time."""
    world = make_world()
    for name in ("demo", "other"):
        assert world.drive(world.create(name), "provision_cluster") == "ready"

    def services_of(tenant: str) -> Any:
        platform = tenant == "_platform"
        return replace_store(world, world.registry.platform() if platform else world.registry.store(tenant))

    reaper = Reaper(world.registry, world.clock, services_of)
    looks(world, reaper, 90)
    return world, reaper


def replace_store(world: World, store: Any) -> Any:
    names = [name for name in world.services.__slots__ if name != "store"]
    return type(world.services)(**{name: getattr(world.services, name) for name in names}, store=store)


def looks(world: World, reaper: Reaper, minutes: int) -> int:
    """Number of sweeps of the account within so many minutes; a run comes each five."""
    world.provider.sweeps.clear()
    for _ in range(minutes // 5):
        world.clock.advance(5 * MINUTE)
        reaper.run()
    return len(world.provider.sweeps)


def test_a_quiet_account_is_asked_once_an_hour(quiet: tuple[World, Reaper]) -> None:
    assert looks(*quiet, 240) == 4


def test_after_anything_has_happened_it_is_asked_each_time_for_an_hour(quiet: tuple[World, Reaper]) -> None:
    world, _ = quiet
    cluster = next(iter(world.services.store.list(Cluster).items))
    deleting = delete_cluster(world.services, cluster.id, "user:ann")
    assert world.drive(deleting, "delete_cluster") == "gone"
    assert looks(*quiet, 60) >= 11
    assert looks(*quiet, 240) <= 5


def test_the_end_of_a_cluster_is_met_within_five_minutes_in_a_quiet_tenant_too(quiet: tuple[World, Reaper]) -> None:
    """Sweeps go through clusters each time, and tell of an end a day before."""
    world, _ = quiet
    for cluster, days in zip(world.services.store.list(Cluster).items, (0, 1), strict=True):
        ends_at = world.clock.now() + timedelta(days=days, minutes=122)
        change = ClusterChange(expiry=Expiry(times.to_text(ends_at)))
        change_cluster(world.services, cluster.id, cluster.version, change, actor="user:ann", request_id="r")

    def reasons() -> list[str]:
        return [event.reason for event in every(world.services.store, Event) if event.reason in ("Expiring", "Expired")]

    assert looks(*quiet, 120) < 20
    assert reasons() == ["Expiring"]
    looks(*quiet, 5)
    assert sorted(reasons()) == ["Expired", "Expiring", "Expiring"]


def test_what_is_found_is_watched(quiet: tuple[World, Reaper]) -> None:
    """An orphan that appears without an event is seen within an hour, and removed as soon as it may be."""
    world, _ = quiet
    world.provider.things["network-clu_lost"] = "network"
    assert looks(*quiet, 60) >= 1
    looks(*quiet, 60 + world.services.settings.sweep_grace_seconds // MINUTE)
    assert "network-clu_lost" not in world.provider.things


def test_an_account_that_does_not_answer_is_asked_each_time(quiet: tuple[World, Reaper]) -> None:
    world, reaper = quiet
    looks(world, reaper, 60)
    world.provider.dark.add("us-east-1")
    looks(world, reaper, 60)
    assert looks(world, reaper, 60) == 12
    world.provider.dark.clear()
    assert looks(world, reaper, 120) <= 4


@pytest.mark.parametrize(
    ("fields", "calm"),
    [
        ({}, True),
        ({"control_plane": True}, True),
        ({"deleting": True}, False),
        ({"kept_until": "2026-02-01T00:00:00.000Z"}, False),
        ({"placement": Placement("p", "yard.m5", SPOT, ("a",), 1.0, "2026-01-31T12:00:00.000Z")}, False),
        ({"placement": Placement("p", "yard.m5", CAPACITY_BLOCK, ("a",), 1.0, "2026-01-31T12:00:00.000Z")}, False),
        ({"placement": Placement("p", "yard.m5", "on-demand", ("a",), 1.0, "2026-01-31T12:00:00.000Z")}, True),
    ],
)
def test_what_a_claim_needs(fields: dict[str, Any], calm: bool) -> None:
    now = "2026-01-31T12:00:00.000Z"
    claim = NodeClaim(id="ncl_1", name="n", created_at=now, updated_at=now, cluster_id="clu_1")
    claim = replace(claim, **fields)
    assert is_calm(Tally(), [], [claim]) is calm
    assert not is_calm(Tally(failures=["x"]), [], [claim])
    member = replace(claim, control_plane=True)
    assert not is_calm(Tally(), [], [member, replace(member, id="ncl_2")])


def test_a_scope_is_due_as_its_last_sweep_and_the_last_event_say() -> None:
    now = times.from_text("2026-01-31T12:00:00.000Z")

    def ago(minutes: int) -> str:
        return times.to_text(now - timedelta(minutes=minutes))

    for calm_since, last_event, due in (
        (None, None, True),
        (ago(30), None, False),
        (ago(60), None, True),
        (ago(30), ago(59), True),
        (ago(30), ago(61), False),
    ):
        assert sweeping.scope_due(calm_since, last_event, now) is due, (calm_since, last_event)
