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
    ways = [way for way in node_type.offerings if way.capacity_type == placed.capacity_type] if node_type else []
    ways = [way for way in ways if ANY in (*way.zones, *placed.zones) or set(way.zones) & set(placed.zones)]
    if node_type is None or not ways:
        return placed.usd_hour
    ids = stock.zone_ids.get(node_type.provider, {})
    offerings = [_at_its_least(way, placed.zones, ids) for way in ways]
    if placed.capacity_type == SPOT:
        offerings = [_within_bid(way, Bid.of(claim.max_price), node_type) for way in offerings]
    with_own_disk = with_disk(node_type, claim.properties)
    prices = [money for way in offerings if (money := with_own_disk.money(way)) is not None]
    return min(prices, default=placed.usd_hour)


def weight_of(claim: NodeClaim, price: float) -> float:
    """Weight of the claim's node in decisions, see ``NodeType.weight``; ``price`` is its price in USD an hour."""
    placed = claim.placement
    return own_weight(placed.cost) if placed is not None and placed.owned else price


def _at_its_least(way: Offering, zones: Sequence[str], ids: Mapping[str, str]) -> Offering:
    """The offering at the least that it cost of late in these zones; where they are not known, in any."""
    if not way.zone_prices:
        return way
    there = [price for _, price in priced_zones(way, known_zones(zones, ids), ids)]
    return replace(way, usd_hour=min(price.low for price in there or way.zone_prices.values()))


def _within_bid(way: Offering, bid: Bid | None, node_type: NodeType) -> Offering:
    limit = bid.limit(on_demand_price(node_type, way)) if bid is not None else None
    return way if limit is None or way.usd_hour is None else replace(way, usd_hour=min(way.usd_hour, limit))
