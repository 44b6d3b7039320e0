"""Node objects that count as gone, and claims that end for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from stockyard.domain.records import NodeClaim
from stockyard.domain.values import times
from stockyard.domain.values.conditions import Condition
from stockyard.lifecycle.disruption import vanished

START = datetime(2026, 1, 1, tzinfo=UTC)


def moment(seconds: int) -> str:
    return times.to_text(START + timedelta(seconds=seconds))


def claim(name: str = "a", phase: str = "Available", joined: int | None = 100, reason: str = "Joined") -> NodeClaim:
    status = "False" if reason == vanished.NODE_GONE else "True"
    conditions = () if joined is None else (Condition("Joined", status, reason, "", moment(joined)),)
    return NodeClaim(name, name, moment(0), moment(0), phase=phase, conditions=conditions, pool="p")


def test_only_a_node_that_had_joined_can_be_gone() -> None:
    for node, observed, expected in (
        (claim(), 120, False),
        (claim(), 121, True),
        # Deleted before it was ready, too.
        (claim(phase="Pending"), 121, True),
        (claim(phase="Failed"), 161, False),
        (claim(phase="Pending", joined=None), 900, False),
        # A release that wrote no such condition.
        (claim(joined=None), 21, True),
        (claim(reason=vanished.NODE_GONE), 101, True),
    ):
        assert vanished.has_vanished(node, None, moment(observed)) is expected
    waiting = Condition("Joined", "Unknown", "Pending", "", moment(0))
    assert not vanished.has_vanished(
        NodeClaim("a", "a", moment(0), moment(0), conditions=(waiting,)), None, moment(900)
    )


def test_a_young_node_that_no_report_has_is_missed_until_it_is_known_whether_it_is_gone() -> None:
    for node, facts, true_at, now, expected in (
        (claim(), None, 105, 110, True),
        (claim(joined=None), None, 5, 110, True),
        (claim(), object(), 105, 110, False),
        # By now it is gone, or nobody has vouched for anything for long.
        (claim(), None, 121, 125, False),
        (claim(), None, 105, 100 + vanished.MISSED_SECONDS, False),
        (claim(phase="Failed"), None, 105, 110, False),
        (claim(phase="Pending", joined=None), None, 105, 110, False),
    ):
        moments = moment(true_at), START + timedelta(seconds=now)
        assert vanished.is_missed(node, facts, *moments) is expected


def test_members_of_the_control_plane_are_healed_otherwise() -> None:
    member = NodeClaim("a", "a", moment(0), moment(0), control_plane=True, pool="control-plane", phase="Available")
    assert not vanished.is_looked_after(member)
    assert vanished.is_looked_after(claim())


def test_those_that_are_gone_for_longest_end_first() -> None:
    gone_claims = [claim(name, joined=100 + number, reason=vanished.NODE_GONE) for number, name in enumerate("abc")]
    assert vanished.to_end(gone_claims, 10, START + timedelta(seconds=149)) == []
    ended_claims = vanished.to_end(gone_claims[::-1], 10, START + timedelta(seconds=170))
    assert [node.id for node in ended_claims] == ["a", "b"]
    assert len(vanished.to_end(gone_claims, 1, START + timedelta(seconds=170))) == 1


def note(node: NodeClaim, facts: object, seconds: int, *, has_pods: bool = False) -> tuple[str, str, bool] | None:
    """Status and reason that are noted, and whether that is told."""
    new = vanished.noted(node, facts, moment(seconds), moment(seconds), has_pods=has_pods)
    if new is None:
        return None
    [joined] = [part for part in new[0].conditions if part.type == "Joined"]
    return joined.status, joined.reason, new[1] is not None


def test_what_is_noted_of_a_node_object() -> None:
    there = object()
    waiting = NodeClaim("a", "a", moment(0), moment(0), pool="p")
    missing = claim(phase="Pending", reason=vanished.NODE_MISSING)
    for node, facts, seconds, has_pods, expected in (
        (claim(), None, 121, False, ("False", vanished.NODE_GONE, True)),
        (claim(), None, 110, True, None),
        (claim(), there, 121, True, None),
        (claim(reason=vanished.NODE_GONE), None, 130, False, None),
        (claim(reason=vanished.NODE_GONE), there, 130, False, ("True", vanished.REJOINED, True)),
        # It came and went before anybody saw it join; or it has only just come.
        (waiting, None, 30, True, ("Unknown", vanished.NODE_MISSING, False)),
        (waiting, None, 30, False, None),
        (missing, there, 110, True, ("Unknown", "Pending", False)),
    ):
        assert note(node, facts, seconds, has_pods=has_pods) == expected
    assert not vanished.has_vanished(missing, None, moment(119))
    assert vanished.has_vanished(missing, None, moment(120))
    assert vanished.to_end([missing], 1, START + timedelta(seconds=150)) == [missing]
