"""Reports of a member that is not well, and its replacement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockyard.domain.records import NodeClaim
from stockyard.lifecycle.clusters.control_plane import Member, given_up, replaces
from stockyard.lifecycle.clusters.member_health import (
    HEALTHY,
    NODE_NOT_READY,
    SILENT,
    Sight,
    condition_of,
    failing,
    noted,
    summary,
    unhealthy,
)

NOW, LATER = "2026-11-25T12:00:00.000Z", "2026-11-25T12:10:01.000Z"
LIMIT = 600


def claim(number: int = 1) -> NodeClaim:
    return NodeClaim(
        id=f"ncl_{number}", name=f"cp-{number}", created_at=NOW, updated_at=NOW, phase="Available", control_plane=True,
        cluster_ref="demo", node_name=f"cp-{number}",
    )  # fmt: skip


def looked_at(member: NodeClaim, sight: Sight, now: str = NOW) -> NodeClaim:
    news = noted(member, sight, now)
    return news[0] if news is not None else member


WELL, DEAF = Sight(answers=True), Sight(answers=False)


def test_nothing_is_said_of_a_member_that_was_always_well() -> None:
    assert noted(claim(), WELL, NOW) is None
    assert failing([claim()], LIMIT, LATER) == []


def test_what_begins_and_ends_is_told_once() -> None:
    first = noted(claim(), DEAF, NOW)
    assert first is not None
    sick, transition = first
    assert (transition.reason, transition.message) == (
        SILENT,
        "The load balancer gets no answer of the API server on member cp-1.",
    )
    assert noted(sick, DEAF, LATER) is None
    well = noted(sick, WELL, LATER)
    assert well is not None
    assert [(part.type, part.status, part.last_transition_time) for part in well[0].conditions] == [
        (HEALTHY, "True", LATER)
    ]
    assert unhealthy([well[0]]) == []


def test_another_reason_keeps_the_time() -> None:
    sick = looked_at(looked_at(claim(), Sight(answers=True, ready=False), NOW), DEAF, LATER)
    part = condition_of(sick)
    assert part is not None
    assert (part.reason, part.last_transition_time) == (SILENT, NOW)


def test_a_node_is_not_ready_from_when_its_cluster_says() -> None:
    since = "2026-11-25T11:58:00.000Z"
    part = condition_of(looked_at(claim(), Sight(True, ready=False, since=since)))
    assert part is not None
    assert (part.reason, part.last_transition_time) == (NODE_NOT_READY, since)
    # What a clock that is ahead says must not make it younger.
    part = condition_of(looked_at(claim(), Sight(True, ready=False, since="2027-01-01T00:00:00.000Z")))
    assert part is not None
    assert part.last_transition_time == NOW


@pytest.mark.parametrize(
    ("members", "sick", "replaced"), [(1, 1, 0), (2, 1, 0), (3, 1, 1), (3, 2, 0), (3, 3, 0), (5, 2, 2), (5, 3, 0)]
)
def test_none_is_replaced_while_most_are_not_well(members: int, sick: int, replaced: int) -> None:
    claims = [looked_at(claim(number), DEAF if number < sick else WELL) for number in range(members)]
    assert failing(claims, LIMIT, NOW) == []
    assert len(failing(claims, LIMIT, LATER)) == replaced


def test_one_that_leaves_or_has_failed_is_no_concern() -> None:
    sick = looked_at(claim(), DEAF)
    for other in (replace(sick, deleting=True), replace(sick, phase="Failed")):
        assert failing([other, claim(2), claim(3)], LIMIT, LATER) == []


def test_the_cluster_says_who_is_not_well_and_since_when() -> None:
    part = summary([looked_at(claim(), DEAF), claim(2), claim(3)], LATER, 3)
    assert (part.status, part.reason) == ("False", SILENT)
    assert part.message == f"The load balancer gets no answer of the API server on member cp-1 since {NOW}."
    assert summary([claim(1), claim(2), claim(3)], NOW, 3).status == "True"


# --- what becomes of it ----------------------------------------------------------------------------------------------


def member(id: str, *, healthy: bool = True, failing: bool = False) -> Member:
    return Member(id, "a", id, joined=True, alive=True, healthy=healthy, serving=True, failing=failing)


def test_one_that_does_not_answer_counts_as_dead_and_one_that_does_as_made_otherwise() -> None:
    neighbours = [member("1"), member("2")]
    (*_, deaf) = given_up([*neighbours, member("3", healthy=False, failing=True)])
    assert (deaf.alive, deaf.current) == (False, True)
    (*_, unready) = given_up([*neighbours, member("3", failing=True)])
    assert (unready.alive, unready.current) == (True, False)


@pytest.mark.parametrize(("healthy", "sick", "replaced"), [(2, 1, True), (1, 1, False), (1, 2, False), (3, 2, True)])
def test_a_quorum_of_all_has_to_be_well(healthy: int, sick: int, replaced: bool) -> None:
    members = [member(f"w{number}") for number in range(healthy)]
    members += [member(f"s{number}", healthy=False, failing=True) for number in range(sick)]
    assert replaces(members) is replaced
    assert all(other.alive is not replaced for other in given_up(members)[healthy:])


def test_one_that_answers_waits_for_another_that_does_not() -> None:
    assert replaces([member("1"), member("2"), member("3", failing=True)])
    assert not replaces([member("1"), member("2", healthy=False), member("3", failing=True)])
    assert not replaces([member("1"), member("2"), member("3", healthy=False)])
