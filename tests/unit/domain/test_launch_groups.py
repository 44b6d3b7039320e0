"""The moves of a launch group's record."""

from __future__ import annotations

from stockyard.domain.launch_groups import INTENDED, MADE, OPEN, Share, intend, left, made, opened, refusal_of, share
from stockyard.domain.records import LaunchGroup
from stockyard.errors import InsufficientCapacity

NOW = "2026-01-31T12:00:00.000Z"
GROUP = LaunchGroup("lgr_1", "clu_1", ("a", "b", "c"), NOW)
MACHINES = [{"id": f"i-{number}", "type": "m6i.large", "zone": "z"} for number in range(3)]


def test_machines_are_given_out_in_the_order_of_those_asked_for() -> None:
    asked = intend(GROUP, ["a", "c"], None, NOW)
    assert (asked.state, asked.asked, asked.version) == (INTENDED, ("a", "c"), 2)
    done = made(asked, MACHINES[:2], None, NOW)
    assert (done.state, done.version) == (MADE, 3)
    assert {claim: machine["id"] for claim, machine in done.machines.items()} == {"a": "i-0", "c": "i-1"}
    assert share(done, "c") == Share(False, "i-1")


def test_a_call_that_made_nothing_is_followed_by_one_with_another_token() -> None:
    first = intend(GROUP, GROUP.members, None, NOW)
    again = intend(opened(first, None), GROUP.members, None, NOW)
    assert first.token
    assert again.token not in ("", first.token)
    assert opened(first, None).state == OPEN


def test_a_member_has_a_share_from_the_call_on() -> None:
    asked = intend(GROUP, ["a", "b"], None, NOW)
    assert share(GROUP, "a").nothing
    assert share(asked, "a").in_flight
    assert share(asked, "c").nothing, "the call is not for it"
    assert share(opened(asked, None), "a").nothing


def test_who_leaves_takes_its_machine_with_it() -> None:
    done = made(intend(GROUP, GROUP.members, None, NOW), MACHINES, None, NOW)
    rest = left(done, "b")
    assert rest.members == ("a", "c")
    assert [machine["id"] for machine in rest.machines.values()] == ["i-0", "i-2"]
    assert rest.version == done.version + 1


def test_a_refusal_is_read_as_it_was_written() -> None:
    refusal = InsufficientCapacity("none left", code="Full", refused=[("m6i.large", "on-demand", "z")])
    found = refusal_of(made(intend(GROUP, GROUP.members, None, NOW), MACHINES[:1], refusal, NOW))
    assert (found.detail, found.code, found.refused) == (refusal.detail, refusal.code, refusal.refused)
    assert refusal_of(made(intend(GROUP, GROUP.members, None, NOW), [], None, NOW)).refused == ()
