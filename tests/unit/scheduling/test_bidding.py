"""Bids for spot: what is chosen, what is said of the rest, and that the two agree on random problems."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from stockyard.domain.nodes.defaults import defaults_of
from stockyard.domain.nodes.node_types import ANY, ON_DEMAND, SPOT, NodeType, Offering
from stockyard.domain.nodes.offers import SpotPrice
from stockyard.domain.pools.bids import ABOVE_BID, Bid
from stockyard.domain.values.requirements import ZONE, Requirements
from stockyard.scheduling.explain import explain
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import Availability, SchedulingRequest, choose, possible_offerings
from stockyard.scheduling.verdict import groups
from tests.properties import problems

IDS = {"p": {"a": "z1", "b": "z2", "c": "z3"}}
PRICES = {"z1": SpotPrice(0.2, 0.1, 0.3), "z2": SpotPrice(0.4, 0.1, 0.9)}
NOTHING = Availability()


@pytest.fixture
def index(node_type):
    ways = (Offering(ON_DEMAND, (ANY,), 1.0), Offering(SPOT, (ANY,), 0.4, PRICES, 1.0))
    return Index.build([node_type("p.x", offerings=ways)])


def spot(bid, *zones, zone_ids=IDS, refused=()):
    entries = [{"key": "karpenter.sh/capacity-type", "values": [SPOT]}]
    entries += [{"key": ZONE, "values": list(zones)}] if zones else []
    return SchedulingRequest(Requirements.of(entries), {"cpu": 1000}, bid=bid, zone_ids=zone_ids)


@pytest.mark.parametrize(
    ("bid", "zones", "expected"),
    [
        (Bid(percent=40), (), (("a", "b"), 0.2)),
        (Bid(percent=39), (), (("a",), 0.2)),
        (Bid(usd_hour=0.2), ("a", "b"), (("a",), 0.2)),
        (Bid(usd_hour=0.2), ("b", "c"), None),
        (Bid(percent=900), ("c",), None),
        (Bid(percent=19), (), None),
    ],
)
def test_spot_is_had_where_it_costs_at_most_the_bid_at_the_price_of_its_cheapest_zone(index, bid, zones, expected):
    choice = choose(index, spot(bid, *zones), NOTHING)
    assert (None if choice is None else (choice.zones, choice.usd_hour)) == expected
    offerings = possible_offerings(index, spot(bid, *zones), NOTHING)
    assert [(row.zones, row.usd_hour) for row in offerings] == ([] if expected is None else [expected])


def test_offerings_are_ordered_by_what_they_cost_in_the_zones_of_the_claim(node_type):
    dear_elsewhere = Offering(SPOT, (ANY,), 0.9, {"z1": SpotPrice(0.2, 0.1, 0.3), "z2": SpotPrice(0.9, 0.1, 0.9)}, 1.0)
    flat = Offering(SPOT, (ANY,), 0.4, {"z1": SpotPrice(0.4, 0.1, 0.9), "z2": SpotPrice(0.4, 0.1, 0.9)}, 1.0)
    index = Index.build([node_type("p.x", offerings=(dear_elsewhere,)), node_type("p.y", offerings=(flat,))])
    cases = {
        (): [("p.x", 0.2), ("p.y", 0.4)],
        ("a",): [("p.x", 0.2), ("p.y", 0.4)],
        ("b",): [("p.y", 0.4), ("p.x", 0.9)],
        ("b", "a"): [("p.x", 0.2), ("p.y", 0.4)],
    }
    for zones, expected in cases.items():
        request = spot(None, *zones)
        best = choose(index, request, NOTHING, candidates=9)
        assert [(row.node_type.name, row.usd_hour) for row in (best, *best.alternatives)] == expected
        assert [(row.node_type.name, row.usd_hour) for row in possible_offerings(index, request, NOTHING)] == expected
        assert [(row.node_type.name, row.usd_hour) for row in explain(index, request, NOTHING)] == expected
    unknown = choose(index, spot(None, zone_ids={}), NOTHING)
    assert (unknown.node_type.name, unknown.usd_hour) == ("p.y", 0.4)
    refused = choose(index, spot(None), Availability(refused=frozenset({("p.x", SPOT, "a")})))
    assert (refused.node_type.name, refused.usd_hour) == ("p.y", 0.4)


def test_the_price_that_was_seen_is_told(index):
    (evaluation,) = explain(index, spot(Bid(percent=10)), NOTHING)
    assert (evaluation.rule, evaluation.least_price) == (ABOVE_BID, 0.2)
    assert evaluation.message == "spot costs 0.2 USD an hour at least, the bid is 10 % of on-demand"
    (reason,) = groups([evaluation])
    assert reason.sentence == "1 node type at a spot price above the bid (10 % of on-demand)"
    (of_zone,) = explain(index, spot(Bid(usd_hour=0.3), "b"), NOTHING)
    assert of_zone.message == "spot costs 0.4 USD an hour at least, the bid is 0.3 USD an hour"


def test_a_zone_that_was_refused_of_late_is_left_out(index):
    refused = Availability(refused=frozenset({("p.x", SPOT, "a")}))
    choice = choose(index, spot(Bid(percent=40)), refused)
    assert choice.zones == ("b",)
    assert choose(index, spot(Bid(percent=30)), refused) is None
    (evaluation,) = explain(index, spot(Bid(percent=30)), refused)
    assert evaluation.rule == "RefusedRecently"


def test_on_demand_is_no_matter_of_a_bid(index):
    request = SchedulingRequest(Requirements.of([]), {"cpu": 1000}, bid=Bid(percent=1), zone_ids=IDS)
    choice = choose(index, request, NOTHING)
    assert (choice.capacity_type, choice.zones) == (ON_DEMAND, (ANY,))


def priced(chance: Random, node_type: NodeType) -> NodeType:
    """The type with spot that costs something else in each zone, or the same in all."""
    ways = []
    for way in node_type.offerings:
        ids = IDS["p"].values()
        prices = {each: SpotPrice(chance.choice((0.1, 0.5, 1.5)), 0.1, 2.0) for each in ids if chance.random() < 0.8}
        by_zone = prices if chance.random() < 0.7 else {}
        dearest = max((price.now for price in by_zone.values()), default=way.usd_hour)
        on_demand = chance.choice((None, 1.0))
        ways.append(Offering(SPOT, way.zones, dearest, by_zone, on_demand) if way.capacity_type == SPOT else way)
    return replace(node_type, offerings=tuple(ways))


def test_choices_and_explanations_agree_on_random_problems(seed, soaking):
    ruled_out = 0
    for number in range(5000 if soaking else 150):
        chance = Random(seed * 100_000 + number)
        data = problems.problem(chance)
        index = Index.build([priced(chance, node_type) for node_type in problems.node_types_of(data)])
        availability = problems.availability_of(data)
        for request in problems.requests_of(data):
            bids = (Bid(percent=chance.choice((20, 60, 200))), Bid(usd_hour=0.5), None)
            bid = chance.choice(bids)
            ids = {name: IDS["p"] for name in index.providers if chance.random() < 0.7}
            defaults = defaults_of(request.requirements, bids=bid is not None)
            bidding = replace(request, bid=bid, zone_ids=ids, defaults=defaults)
            choice = choose(index, bidding, availability, candidates=1000)
            evaluations = explain(index, bidding, availability)
            rows = [] if choice is None else [choice, *choice.alternatives]
            assert {row.node_type.name for row in rows} == {e.node_type.name for e in evaluations if e.rule is None}
            assert [e.node_type.name for e in evaluations if e.selected] == [row.node_type.name for row in rows[:1]]
            ruled_out += sum(e.rule == ABOVE_BID for e in evaluations)
    assert ruled_out
