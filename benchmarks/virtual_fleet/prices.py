"""Prices that a fleet's stage has: the sheet of the region as of now, and what EC2 says of spot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from stockyard.adapters import catalog
from stockyard.domain.nodes.offers import RegionOffers, SpotPrice, SpotPrices
from stockyard.domain.values import times
from stockyard.ports import Store

FAMILIES = ("m6i.", "m5.")
"""Whose spot prices are known."""
PART_OF_PRICE = 0.4
ZONES = {f"use1-az{number}": f"{catalog.OFFLINE_REGION}{letter}" for number, letter in enumerate("abc", 1)}
"""Names of zones by their ids."""


def offers() -> RegionOffers:
    """The offers of the region without a refresh."""
    sheet: RegionOffers = catalog._offline()[0]
    return sheet


def spot_usd() -> Mapping[str, float]:
    """USD an hour of each type on spot."""
    rows = offers().instances.items()
    return {
        name: round(row.usd_hour * PART_OF_PRICE, 4) for name, row in rows if name.startswith(FAMILIES) and row.usd_hour
    }


def keep(store: Store, now: datetime) -> None:
    """Write the sheets as a refresh would have done now."""
    text, sheets = times.to_text(now), catalog.StoredPriceSheets(store)
    sheets.write(replace(offers(), as_of=text))
    prices = {name: {zone: SpotPrice(usd, usd, usd) for zone in ZONES} for name, usd in spot_usd().items()}
    sheets.write_spot(SpotPrices(catalog.OFFLINE_REGION, text, prices))


def history(now: datetime) -> dict[str, Any]:
    """EC2's answer to a question for spot prices."""
    rows = [
        {
            "InstanceType": name, "AvailabilityZone": zone, "AvailabilityZoneId": zone_id,
            "SpotPrice": str(usd), "Timestamp": now, "ProductDescription": "Linux/UNIX",
        }
        for name, usd in spot_usd().items()
        for zone_id, zone in ZONES.items()
    ]  # fmt: skip
    return {"SpotPriceHistory": rows}


def zones() -> dict[str, Any]:
    """EC2's answer to a question for zones."""
    rows = [{"ZoneName": name, "ZoneId": zone_id, "State": "available"} for zone_id, name in ZONES.items()]
    return {"AvailabilityZones": rows}
