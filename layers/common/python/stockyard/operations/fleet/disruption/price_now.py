"""Present price of the node of a claim, as decisions about it weigh it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from stockyard.domain.nodes.disks import with_disk
from stockyard.domain.nodes.node_types import ANY, SPOT, NodeType, Offering, own_weight
from stockyard.domain.nodes.prices import known_zones, priced_zones
from stockyard.domain.pools.bids import Bid, on_demand_price
from stockyard.domain.records import NodeClaim
from stockyard.operations.fleet.templates import Supply


def price_of(stock: Supply, claim: NodeClaim) -> float | None:
    """Present price of the claim's node, in USD an hour; where the price moves, the least that it cost of late.

    A type that is not offered any more costs what it did when the claim was bound. None where nothing is known. Spot
    costs no more than its claim's bid: its node is kept when the price leaves the range.
    """
    placed = claim.placement
    if placed is None:
        return None
    node_type = stock.catalog.node_types.get(placed.type)
    alike = (
        [offering for offering in node_type.offerings if offering.capacity_type == placed.capacity_type]
        if node_type
        else []
    )
    alike = [
        offering
        for offering in alike
        if ANY in (*offering.zones, *placed.zones) or set(offering.zones) & set(placed.zones)
    ]
    if node_type is None or not alike:
        return placed.usd_hour
    ids = stock.zone_ids.get(node_type.provider, {})
    offerings = [_at_its_least(offering, placed.zones, ids) for offering in alike]
    if placed.capacity_type == SPOT:
        offerings = [_within_bid(offering, Bid.of(claim.max_price), node_type) for offering in offerings]
    with_own_disk = with_disk(node_type, claim.properties)
    prices = [money for offering in offerings if (money := with_own_disk.money(offering)) is not None]
    return min(prices, default=placed.usd_hour)


def weight_of(claim: NodeClaim, price: float) -> float:
    """Weight of the claim's node in decisions, see ``NodeType.weight``; ``price`` is its price in USD an hour."""
    placed = claim.placement
    return own_weight(placed.cost) if placed is not None and placed.owned else price


def _at_its_least(offering: Offering, zones: Sequence[str], ids: Mapping[str, str]) -> Offering:
    """The offering at the least that it cost of late in these zones; where they are not known, in any."""
    if not offering.zone_prices:
        return offering
    there = [price for _, price in priced_zones(offering, known_zones(zones, ids), ids)]
    return replace(offering, usd_hour=min(price.low for price in there or offering.zone_prices.values()))


def _within_bid(offering: Offering, bid: Bid | None, node_type: NodeType) -> Offering:
    limit = bid.limit(on_demand_price(node_type, offering)) if bid is not None else None
    return (
        offering
        if limit is None or offering.usd_hour is None
        else replace(offering, usd_hour=min(offering.usd_hour, limit))
    )
