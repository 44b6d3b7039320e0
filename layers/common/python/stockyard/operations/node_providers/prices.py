"""The catalogue of a region as a list of prices."""

from __future__ import annotations

from typing import Any

from stockyard.domain.offers import RegionOffers

UNITS = {"gp3": "GB-month", "nat_gateway_gb": "GB"}


def list_prices(offers: RegionOffers | None) -> list[dict[str, Any]]:
    """Instance types and rates in order of name; nothing for a region that is not known."""
    if offers is None:
        return []
    items = [_item(offers.region, name, UNITS.get(name, "hour"), price) for name, price in offers.rates.items()] + [
        _item(offers.region, name, "hour", offer.usd_hour) for name, offer in offers.instances.items()
    ]
    return sorted(items, key=lambda item: str(item["name"]))


def _item(region: str, name: str, unit: str, price: float | None) -> dict[str, Any]:
    return {"region": region, "name": name, "unit": unit, "currency": "USD", "price": price}
