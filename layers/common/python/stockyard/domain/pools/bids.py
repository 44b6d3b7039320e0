"""Bids for spot capacity, and the zones in which an offering costs no more than a bid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stockyard.domain.nodes.node_types import ANY, ON_DEMAND, SPOT, NodeType, Offering
from stockyard.domain.values.frozen import dataclass

PERCENT, USD_HOUR = "percent", "usd_hour"
"""The two forms of a bid, of which it has one."""
ABOVE_BID = "SpotPriceAboveBid"
"""The rule that leaves an offering out, and why a claim waits where nothing else does."""


@dataclass(frozen=True, slots=True)
class Bid:
    """The most that a node may cost as spot: a part of what its own type costs on demand in its region, which may be
    more than all of it, or an amount."""

    percent: float | None = None
    usd_hour: float | None = None

    @classmethod
    def of(cls, max_price: Mapping[str, float]) -> Bid | None:
        """The bid of a record's ``max_price``; None where there is none."""
        if not max_price:
            return None
        return cls(max_price.get(PERCENT), max_price.get(USD_HOUR))

    def limit(self, on_demand: float | None) -> float | None:
        """USD an hour for a type with that price on demand; None where a part of it is meant and it is not known."""
        if self.percent is None:
            return self.usd_hour
        return None if on_demand is None else round(on_demand * self.percent / 100, 6)

    @property
    def text(self) -> str:
        """The bid in words."""
        return f"{self.usd_hour:g} USD an hour" if self.percent is None else f"{self.percent:g} % of on-demand"


def on_demand_price(node_type: NodeType, offering: Offering) -> float | None:
    """Price of the type on demand, of which a bid in percent is a part."""
    if offering.on_demand_usd_hour is not None:
        return offering.on_demand_usd_hour
    return next((each.usd_hour for each in node_type.offerings if each.capacity_type == ON_DEMAND), None)


def zones_in_range(
    bid: Bid, node_type: NodeType, offering: Offering, zones: Sequence[str], zone_ids: Mapping[str, str]
) -> tuple[str, ...]:
    """The zones among the given ones in which the offering costs at most the bid. Only spot is bid for.

    ``*`` becomes the zones of ``zone_ids`` (ids by name) where prices differ by zone. While no zone is known it stays
    where one of them is cheap enough: which of them it may be is known when the machine is launched.
    """
    if offering.capacity_type != SPOT:
        return tuple(zones)
    limit = bid.limit(on_demand_price(node_type, offering))
    if limit is None:
        return ()
    if not offering.zone_prices:
        return tuple(zones) if offering.usd_hour is None or offering.usd_hour <= limit else ()
    cheap = {zone_id for zone_id, price in offering.zone_prices.items() if price.now <= limit}
    if ANY in zones and not zone_ids:
        return tuple(zones) if cheap else ()
    names = sorted(zone_ids) if ANY in zones else zones
    if not all(name in zone_ids for name in names):
        return tuple(zones) if cheap else ()
    return tuple(name for name in names if zone_ids[name] in cheap)
