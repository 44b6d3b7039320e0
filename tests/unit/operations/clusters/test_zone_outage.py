"""A zone goes with everything in it: the members of a control plane heal into the others. The same over HTTP, with
nodes, is in ``tests/e2e/test_zones.py``."""

from __future__ import annotations

from collections import Counter

import pytest

from stockyard.lifecycle.pools.spread import zone_of
from stockyard.operations.clusters.healing.completion import complete_members
from tests.unit.operations.clusters.members_world import ZONES, MembersWorld, members_world


@pytest.mark.parametrize("index", range(3), ids=["first member", "second member", "third member"])
def test_members_heal_into_the_zones_that_are_left(index: int) -> None:
    members = members_world(3)
    members.drive()
    victim = members.members()[index]
    zone = zone_of(victim)
    take_away(members, zone)
    assert complete_members(members.world.services, members.id)
    began = members.world.clock.now()
    assert members.drive() == "changed"
    minutes = (members.world.clock.now() - began).total_seconds() / 60
    counts = Counter(members.zones())
    assert counts.keys() == set(ZONES) - {zone}
    assert sorted(counts.values()) == [1, 2]
    assert len(members.voters) == 3
    waited = members.world.services.settings.zone_wait_seconds / 60
    assert waited <= minutes < waited + 3, "its own zone may have room again soon; then another one will do"


def test_a_member_that_comes_later_stands_in_the_zone_that_is_back() -> None:
    members = members_world(3)
    members.drive()
    zone = zone_of(members.members()[1])
    take_away(members, zone)
    complete_members(members.world.services, members.id)
    members.drive()
    members.zones_down.clear()
    before = {claim.id for claim in members.members()}
    assert not complete_members(members.world.services, members.id), "no member is moved for that"
    members.patch({"settings": {"control_plane_size": 5}})
    assert members.drive() == "changed"
    assert before < {claim.id for claim in members.members()}
    assert Counter(members.zones())[zone] == 2


def test_without_room_anywhere_a_member_waits() -> None:
    members = members_world(3)
    members.drive()
    take_away(members, zone_of(members.members()[2]))
    members.zones_down |= set(ZONES)
    complete_members(members.world.services, members.id)
    members.dying = [10**6]
    room_at = members.waits + 60

    def meanwhile() -> None:
        MembersWorld.meanwhile(members)
        if members.waits == room_at:
            members.zones_down.clear()

    members.meanwhile = meanwhile
    assert members.drive() == "changed"
    assert members.waits > room_at
    assert len(members.voters) == 3


def take_away(members: MembersWorld, zone: str) -> None:
    """Every machine there has ended, and the sweep has seen it."""
    members.zones_down.add(zone)
    for claim in members.members():
        if zone_of(claim) == zone:
            members.provider.ended_machines.add(claim.machine_id)
            members.miss(claim)
