"""The moves of a launch group's record."""

from __future__ import annotations

from stockyard.domain.nodes.launch_groups import (
    INTENDED,
    MADE,
    OPEN,
    Share,
    announce_call,
    record_launch,
    refusal_of,
    reopen,
    share,
    without_member,
)
from stockyard.domain.records import LaunchGroup
from stockyard.errors import InsufficientCapacity

NOW = "2026-01-31T12:00:00.000Z"
GROUP = LaunchGroup("lgr_1", "clu_1", ("a", "b", "c"), NOW)
MACHINES = [{"id": f"i-{number}", "type": "m6i.large", "zone": "z"} for number in range(3)]


def test_launched_machines_are_assigned_in_order_of_members() -> None:
    announced = announce_call(GROUP, ["a", "c"], None, NOW)
    assert (announced.state, announced.asked, announced.version) == (INTENDED, ("a", "c"), 2)
    done = record_launch(announced, MACHINES[:2], None, NOW)
    assert (done.state, done.version) == (MADE, 3)
    assert {claim: machine["id"] for claim, machine in done.machines.items()} == {"a": "i-0", "c": "i-1"}
    assert share(done, "c") == Share(False, "i-1")


def test_next_call_after_reopen_has_another_token() -> None:
    first = announce_call(GROUP, GROUP.members, None, NOW)
    again = announce_call(reopen(first, None), GROUP.members, None, NOW)
    assert first.token
    assert again.token not in ("", first.token)
    assert reopen(first, None).state == OPEN


def test_member_has_share_after_call_is_announced() -> None:
    announced = announce_call(GROUP, ["a", "b"], None, NOW)
    assert share(GROUP, "a").nothing
    assert share(announced, "a").in_flight
    assert share(announced, "c").nothing, "the call is not for it"
    assert share(reopen(announced, None), "a").nothing


def test_without_member_removes_its_machine() -> None:
    done = record_launch(announce_call(GROUP, GROUP.members, None, NOW), MACHINES, None, NOW)
    remaining = without_member(done, "b")
    assert remaining.members == ("a", "c")
    assert [machine["id"] for machine in remaining.machines.values()] == ["i-0", "i-2"]
    assert remaining.version == done.version + 1


def test_refusal_round_trip() -> None:
    way = ("m6i.large", "on-demand", "z")
    refusal = InsufficientCapacity("none left", code="Full", refused=[way], own=[way])
    error = refusal_of(record_launch(announce_call(GROUP, GROUP.members, None, NOW), MACHINES[:1], refusal, NOW))
    assert (error.detail, error.code) == (refusal.detail, refusal.code)
    assert error.refused == error.own == (way,)
    assert refusal_of(record_launch(announce_call(GROUP, GROUP.members, None, NOW), [], None, NOW)).refused == ()
