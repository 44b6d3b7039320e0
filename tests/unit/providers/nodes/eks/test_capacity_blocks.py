"""Groups of a capacity block: what is not to be had now is said, and never had in another way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from local.aws.corrections.compute.reservations import new_block
from stockyard.domain.values import times
from stockyard.domain.values.times import from_text
from stockyard.errors import CapacityAwaited, VendorRefused

P5, BLOCK = "p5.48xlarge", "cr-0123456789abcdef0"


def block(yard: Any, *, begins: float = -1, ends: float = 24, count: int = 2, zone: str = "", kind: str = P5) -> None:
    """A block of a group of the pool ``gpu``; hours are counted from now."""
    now = yard.clock.now()
    zone = zone or yard.groups.zones[0]
    dates = now + timedelta(hours=begins), now + timedelta(hours=ends)
    new_block("222222222222", "us-east-1", kind, zone, count, *dates, name=BLOCK)
    yard.settings({"name": "gpu", "instance_type": P5, "capacity_reservation_id": BLOCK})


def nothing_was_made(yard: Any, group: str) -> bool:
    return (yard.groups.machines(), yard.groups.size(group)) == ([], 0)


def test_machines_of_a_block_are_taken_while_it_has_room_and_cost_what_it_costs(yard: Any) -> None:
    block(yard, count=1)
    yard.groups.block_group("gpu", P5, BLOCK)
    outcome = yard.launch(yard.claim("A", "gpu", P5))
    assert (outcome.facts["type"], outcome.facts["capacity_type"]) == (f"aws.{P5}", "capacity-block")


def test_before_its_begin_the_claim_waits_with_the_date(yard: Any) -> None:
    block(yard, begins=30)
    group = yard.groups.block_group("gpu", P5, BLOCK)
    with pytest.raises(CapacityAwaited) as caught:
        yard.step(yard.claim("A", "gpu", P5))
    begin = yard.clock.now() + timedelta(hours=30)
    assert (caught.value.reason, from_text(caught.value.again_at)) == ("CapacityBlockNotStarted", begin)
    assert caught.value.detail == (
        f"capacity block {BLOCK} of {P5} in us-east-1a begins at {caught.value.again_at}; the claim waits for it."
    )
    assert nothing_was_made(yard, group)


def test_an_exhausted_block_is_said_and_looked_at_again(yard: Any) -> None:
    block(yard, count=1)
    group = yard.groups.block_group("gpu", P5, BLOCK)
    first = yard.claim("A", "gpu", P5)
    yard.launch(first)
    with pytest.raises(CapacityAwaited, match="is exhausted: all of its 1 machines are in use") as caught:
        yard.step(yard.claim("B", "gpu", P5))
    assert caught.value.reason == "CapacityBlockExhausted"
    assert from_text(caught.value.again_at) > yard.clock.now()
    assert (len(yard.groups.machines()), yard.groups.size(group)) == (1, 1)


def test_a_claim_whose_machine_is_on_its_way_is_not_told_that_the_block_is_exhausted(yard: Any) -> None:
    block(yard, count=2)
    group = yard.groups.block_group("gpu", P5, BLOCK)
    claims = [yard.claim(letter, "gpu", P5) for letter in "AB"]
    assert not yard.step(claims[0]).done
    assert yard.groups.size(group) == 2, "for both"
    machines = {yard.launch(claim).facts["machine_id"] for claim in claims}
    assert sorted(machines) == sorted(yard.groups.members(group))


def test_the_end_of_a_blocks_machines_is_known_from_the_launch_on_and_asked_for_again(yard: Any) -> None:
    """Case b59."""
    block(yard)
    yard.groups.block_group("gpu", P5, BLOCK)
    claim = yard.claim("A", "gpu", P5)
    until = times.to_text(yard.clock.now() + timedelta(hours=23.5))
    assert yard.launch(claim).facts["reserved_until"] == until
    assert yard.source.ends_at(yard.work(claim)) == until
    assert yard.source.ends_at(yard.work(yard.claim("B"))) is None, "a machine of no block"
    yard.settings({"name": "gpu", "instance_type": P5, "capacity_reservation_id": "cr-gone"})
    assert yard.source.ends_at(yard.work(claim)) is None


def test_when_its_nodes_leave_a_block_gives_out_nothing(yard: Any) -> None:
    block(yard, ends=0.69)
    group = yard.groups.block_group("gpu", P5, BLOCK)
    with pytest.raises(VendorRefused, match="has no machine any more"):
        yard.step(yard.claim("A", "gpu", P5))
    assert nothing_was_made(yard, group)


def test_in_its_last_half_hour_a_block_gives_out_nothing(yard: Any) -> None:
    block(yard, ends=0.4)
    group = yard.groups.block_group("gpu", P5, BLOCK)
    with pytest.raises(VendorRefused, match="has no machine any more; it ends at 2026-01-31T12:24:00"):
        yard.step(yard.claim("A", "gpu", P5))
    assert nothing_was_made(yard, group)


def test_a_block_of_another_zone_is_refused(yard: Any) -> None:
    block(yard, zone=yard.groups.zones[1])
    group = yard.groups.block_group("gpu", P5, BLOCK)
    with pytest.raises(VendorRefused, match="is in another zone than the group: us-east-1a") as caught:
        yard.step(yard.claim("A", "gpu", P5))
    assert caught.value.code == "CapacityBlockZone"
    assert nothing_was_made(yard, group)


def test_a_block_that_ended_while_nodes_ran_takes_them_and_gives_none_back(yard: Any) -> None:
    block(yard, ends=2)
    group = yard.groups.block_group("gpu", P5, BLOCK)
    claim = yard.claim("A", "gpu", P5)
    yard.launch(claim)
    yard.clock.advance(3 * 3600)
    yard.groups.scaling.describe_auto_scaling_groups()
    assert yard.source.look(yard.work(claim)).state == "gone"
    with pytest.raises(VendorRefused, match="ended at 2026-01-31T14:00:00") as caught:
        yard.step(yard.claim("B", "gpu", P5))
    assert caught.value.code == "CapacityBlockEnded"
    yard.end(claim)
    assert yard.groups.members(group) == []


def test_a_block_that_nobody_has_is_refused(yard: Any) -> None:
    yard.groups.group("gpu", P5)
    yard.settings({"name": "gpu", "instance_type": P5, "capacity_reservation_id": BLOCK})
    with pytest.raises(VendorRefused, match=f"there is no capacity block {BLOCK}"):
        yard.step(yard.claim("A", "gpu", P5))
