"""Cost of a node: the one place where its price is worked out, for plans, claims, pools, limits, costs, explanations
and simulations.

The price of an offering is that of the zone in which its node stands. While a node may still come to stand in several
zones, the cheapest of them counts; while the zones of its cluster are not known, the dearest of the region does. What
is not known is None, which is no 0 and is never added as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stockyard.domain.nodes.node_types import ANY, Offering
from stockyard.domain.nodes.offers import SpotPrice


def price_in(offering: Offering, zones: Sequence[str], zone_ids: Mapping[str, str]) -> float | None:
    """USD an hour of an offering in the cheapest of these zones. ``zone_ids`` are the ids of the known zones, by name.

    None where none of the known zones has a price: the offering is not sold there.
    """
    if not offering.zone_prices:
        return offering.usd_hour
    names = known_zones(zones, zone_ids)
    if not names:
        return offering.usd_hour
    return min((price.now for _, price in priced_zones(offering, names, zone_ids)), default=None)


def least_price(offering: Offering, zones: Sequence[str], zone_ids: Mapping[str, str]) -> float | None:
    """The least that was seen of an offering in these zones; where they are not known, in any. None: nobody knows."""
    there = [price.now for _, price in priced_zones(offering, known_zones(zones, zone_ids), zone_ids)]
    anywhere = [price.now for price in offering.zone_prices.values()]
    return min(there or anywhere, default=offering.usd_hour)


def known_zones(zones: Sequence[str], zone_ids: Mapping[str, str]) -> list[str]:
    """Names of these zones whose ids are known; ``*`` stands for all that are known."""
    return sorted(zone_ids) if ANY in zones else [zone for zone in zones if zone in zone_ids]


def priced_zones(
    offering: Offering, zones: Iterable[str], zone_ids: Mapping[str, str]
) -> Sequence[tuple[str, SpotPrice]]:
    """The zones among the given ones in which the offering is sold, each with its price."""
    prices = offering.zone_prices
    return [(zone, prices[zone_ids[zone]]) for zone in zones if zone_ids[zone] in prices]


def total(prices: Iterable[float | None]) -> float | None:
    """The sum of prices; None where one of them is not known."""
    listed = list(prices)
    known_prices = [price for price in listed if price is not None]
    return sum(known_prices) if len(known_prices) == len(listed) else None
