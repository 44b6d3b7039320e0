"""Price of a node: the price of an offering is that of its zone, and what is not known is no 0."""

from __future__ import annotations

from stockyard.domain.nodes.node_types import ANY, ON_DEMAND, SPOT, Offering
from stockyard.domain.nodes.offers import SpotPrice
from stockyard.domain.nodes.prices import least_price, price_in, total

IDS = {"us-east-1a": "z1", "us-east-1b": "z2", "us-east-1c": "z3"}
PRICES = {"z1": SpotPrice(0.02, 0.01, 0.9), "z2": SpotPrice(0.05, 0.01, 0.9), "z4": SpotPrice(0.07, 0.01, 0.9)}
WAYS = Offering(SPOT, (ANY,), 0.07, PRICES)


def test_the_cheapest_of_the_zones_counts_and_the_dearest_while_none_is_known() -> None:
    expected = {
        ("us-east-1a",): 0.02,
        ("us-east-1b",): 0.05,
        ("us-east-1b", "us-east-1a"): 0.02,
        ("us-east-1b", "eu-1"): 0.05,
        (ANY,): 0.02,
        ("us-east-1c",): None,
        ("eu-1",): 0.07,
    }
    assert {zones: price_in(WAYS, zones, IDS) for zones in expected} == expected
    assert price_in(WAYS, (ANY,), {}) == 0.07
    assert price_in(Offering(ON_DEMAND, ("a",), 0.3), ("a",), IDS) == 0.3


def test_the_least_that_was_seen() -> None:
    assert least_price(WAYS, (ANY,), IDS) == 0.02
    assert least_price(WAYS, ("us-east-1b",), IDS) == 0.05
    assert least_price(WAYS, ("eu-1",), IDS) == 0.02
    assert least_price(Offering(SPOT, ("a",)), ("a",), {}) is None


def test_what_is_not_known_is_never_added_as_zero() -> None:
    assert (total([0.25, 0.5]), total([0.25, None]), total([])) == (0.75, None, 0)
