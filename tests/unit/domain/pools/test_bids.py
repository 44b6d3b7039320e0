"""The most that spot may cost: its two forms, and the zones that are in range."""

from __future__ import annotations

import pytest

from stockyard.domain.nodes.node_types import ANY, ON_DEMAND, SPOT, Declaration, NodeType, Offering, node_type_of
from stockyard.domain.nodes.offers import SpotPrice
from stockyard.domain.pools.bids import Bid, on_demand_price, zones_in_range

IDS = {"us-east-1a": "z1", "us-east-1b": "z2", "us-east-1c": "z3"}
PRICES = {"z1": SpotPrice(0.02, 0.01, 0.9), "z2": SpotPrice(0.05, 0.01, 0.9)}


def spot(**fields: object) -> Offering:
    return Offering(SPOT, (ANY,), 0.05, PRICES, **fields)


def node_type(*offerings: Offering) -> NodeType:
    return node_type_of(Declaration("p", "t", {"cpu": "1", "memory": "1Gi"}, offerings=offerings))


@pytest.mark.parametrize(
    ("bid", "limit"), [({"percent": 50.0}, 0.05), ({"percent": 150}, 0.15), ({"usd_hour": 0.07}, 0.07)], ids=str
)
def test_a_bid_is_a_part_of_on_demand_or_an_amount(bid: dict[str, float], limit: float) -> None:
    read = Bid.of(bid)
    assert read is not None
    assert read.limit(0.1) == limit
    assert read.limit(None) == bid.get("usd_hour")
    assert Bid.of({}) is None


def test_each_zone_is_in_range_by_its_own_price_and_one_without_a_price_never() -> None:
    ways = spot(on_demand_usd_hour=0.1)
    kind = node_type(ways)
    assert zones_in_range(Bid(percent=20), kind, ways, (ANY,), IDS) == ("us-east-1a",)
    assert zones_in_range(Bid(percent=50), kind, ways, (ANY,), IDS) == ("us-east-1a", "us-east-1b")
    assert zones_in_range(Bid(percent=50), kind, ways, ("us-east-1b", "us-east-1c"), IDS) == ("us-east-1b",)
    assert zones_in_range(Bid(percent=19), kind, ways, (ANY,), IDS) == ()


def test_while_zones_are_not_known_one_that_is_cheap_enough_will_do() -> None:
    ways = spot(on_demand_usd_hour=0.1)
    assert zones_in_range(Bid(percent=20), node_type(ways), ways, (ANY,), {}) == (ANY,)
    assert zones_in_range(Bid(percent=19), node_type(ways), ways, (ANY,), {}) == ()
    assert zones_in_range(Bid(percent=20), node_type(ways), ways, ("eu-1",), IDS) == ("eu-1",)


def test_on_demand_is_not_bid_for_and_a_part_of_an_unknown_price_is_nothing() -> None:
    on_demand = Offering(ON_DEMAND, ("a",), 9.0)
    assert zones_in_range(Bid(usd_hour=0.01), node_type(on_demand), on_demand, ("a",), {}) == ("a",)
    ways = spot()
    assert zones_in_range(Bid(percent=900), node_type(ways), ways, (ANY,), IDS) == ()
    assert on_demand_price(node_type(on_demand, ways), ways) == 9.0


def test_where_one_price_holds_everywhere_it_counts_and_an_unknown_one_is_left_to_the_cloud() -> None:
    dear, unknown = Offering(SPOT, ("a", "b"), 0.5), Offering(SPOT, ("a",))
    assert zones_in_range(Bid(usd_hour=0.5), node_type(dear), dear, ("a", "b"), {}) == ("a", "b")
    assert zones_in_range(Bid(usd_hour=0.4), node_type(dear), dear, ("a", "b"), {}) == ()
    assert zones_in_range(Bid(usd_hour=0.4), node_type(unknown), unknown, ("a",), {}) == ("a",)
