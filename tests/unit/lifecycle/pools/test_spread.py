"""Nodes of a pool are spread over its zones within one, as claims come and go one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from stockyard.domain.nodes.records import NodeClaim, Placement
from stockyard.domain.pools.records import Pool
from stockyard.lifecycle.pools.pool import surplus_of
from stockyard.lifecycle.pools.spread import (
    MOVED,
    SHORT,
    claims_to_move,
    fullest_first,
    kept_for_balance,
    leaving_evenly,
    next_zones,
    spread_requirements,
    zone_of,
    zone_requirement,
)

TIME = "2026-01-31T12:00:00.000Z"
ZONE = "topology.kubernetes.io/zone"


def pool(*zones: str, quantity: int = 0) -> Pool:
    return Pool("clu/p", "clu", "p", TIME, TIME, zones=zones, quantity=quantity)


def claim(number: int, zone: str) -> NodeClaim:
    requirements = (zone_requirement(zone),)
    return NodeClaim(f"n{number}", f"n{number}", TIME, TIME, pool="p", requirements=requirements)


def counts(claims: list[NodeClaim], zones: tuple[str, ...]) -> list[int]:
    by_zone = Counter(map(zone_of, claims))
    return [by_zone[zone] for zone in zones]


def test_a_pool_of_zones_asks_for_them_and_another_for_none() -> None:
    assert spread_requirements(pool("a", "b")) == ({"key": ZONE, "operator": "In", "values": ["a", "b"]},)
    assert spread_requirements(pool()) == ()
    assert next_zones(pool(), [], (), 3) == []


def test_a_claim_is_where_it_was_placed_or_else_bound() -> None:
    bound = claim(1, "a")
    assert zone_of(bound) == "a"
    placed = replace(bound, placement=Placement("np", "p.t", "spot", ("b",), 1.0, TIME))
    assert zone_of(placed) == "b"
    assert zone_of(replace(bound, placement=Placement("np", "p.t", "spot", ("*",), 1.0, TIME))) == "a"
    assert zone_of(replace(bound, requirements=())) == ""


@pytest.mark.parametrize("number", range(1, 7))
def test_zones_are_even_after_each_step(number: int, seed: int) -> None:
    """Nodes come and go, one or some at a time."""
    chance, zones = Random(seed + number), tuple("abcdef"[:number])
    claims: list[NodeClaim] = []
    for step in range(100):
        if chance.random() < 0.6:
            new = next_zones(pool(*zones), claims, (), chance.randint(1, 4))
            claims += [claim(step * 10 + index, zone) for index, zone in enumerate(new)]
        else:
            target = max(0, len(claims) - chance.randint(1, 4))
            ids = {each.id for each in surplus_of(pool(*zones, quantity=target), claims)}
            claims = [each for each in claims if each.id not in ids]
            assert len(claims) == target
        amounts = counts(claims, zones)
        assert max(amounts) - min(amounts) <= 1


def test_what_may_be_in_some_zones_only_is_put_into_the_emptiest_of_these() -> None:
    claims = [claim(1, "a"), claim(2, "b"), claim(3, "b")]
    assert next_zones(pool("a", "b", "c"), claims, (), 2, ("a", "b")) == ["a", "a"]
    assert next_zones(pool("a", "b"), claims, (), 1, ("z",)) == []


def test_nodes_on_their_way_out_count_until_they_are_gone_but_not_those_that_are_taken_back() -> None:
    claims = [claim(1, "a"), claim(2, "b"), claim(3, "c")]
    assert next_zones(pool("a", "b", "c"), claims, {"n2"}, 1) == ["b"]
    assert next_zones(pool("a", "b", "c"), [replace(claims[0], deleting=True), *claims[1:]], (), 2) == ["a", "a"]


def test_a_node_leaves_evenly_or_alone() -> None:
    claims = [claim(1, "a"), claim(2, "a"), claim(3, "b")]
    assert [each.id for each in fullest_first(("a", "b"), [claims[2], claims[0]], claims)] == ["n1", "n3"]
    assert leaving_evenly(pool("a", "b"), claims, claims) == [claims[0], claims[1], claims[2]]
    assert leaving_evenly(pool("a", "b"), [claims[2]], claims) == [claims[2]]
    assert leaving_evenly(pool("a", "b"), [claims[0], claims[1]], [*claims, claim(4, "b")]) == [claims[0]]


def test_to_save_money_one_node_of_each_fullest_zone_may_go() -> None:
    claims = [claim(1, "a"), claim(2, "a"), claim(3, "b"), claim(4, "c"), claim(5, "c")]
    assert kept_for_balance({"p": pool("a", "b", "c")}, claims, {"n2"}) == {"n1", "n3", "n5"}
    assert kept_for_balance({"p": pool()}, claims, ()) == set()


def waiting(number: int, zone: str, reason: str = SHORT, **fields: str) -> NodeClaim:
    return replace(claim(number, zone), phase="Pending", reason=reason, message="EC2 has no t3.xlarge.", **fields)


def test_a_claim_that_moves_to_another_zone_says_what_kept_it_from_the_first() -> None:
    later = "2026-01-31T12:10:00.000Z"
    (moved,) = claims_to_move(pool("a", "b"), [waiting(1, "a")], (), later)
    assert (zone_of(moved), moved.reason) == ("b", MOVED)
    assert moved.message == "There was no room in a for long (EC2 has no t3.xlarge); it may be in b now."
    talking = waiting(1, "a", updated_at="2026-01-31T12:09:30.000Z")
    assert claims_to_move(pool("a", "b"), [talking], (), later, "2026-01-31T12:09:00.000Z") == [], "it has just said so"
    assert len(claims_to_move(pool("a", "b"), [talking], (), later, "2026-01-31T12:09:40.000Z")) == 1


def test_a_claim_leaves_a_zone_that_its_pool_has_no_more_whatever_it_waits_for() -> None:
    later = "2026-01-31T12:10:00.000Z"
    (moved,) = claims_to_move(pool("a", "b"), [waiting(1, "c", "NoMatchingNodeType")], (), later)
    assert zone_of(moved) == "a"
    assert claims_to_move(pool("a", "b"), [waiting(1, "a", "NoMatchingNodeType")], (), later) == []
