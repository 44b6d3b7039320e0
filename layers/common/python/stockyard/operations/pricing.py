"""Answers of dry runs: plans, and in them the lines of a bill, by the hour and by the month. And lists of prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from stockyard.domain.nodes.offers import RegionOffers
from stockyard.domain.values.prices import HOURS_A_MONTH, PriceItem

UNITS = {
    "ebs_snapshot": "GB-month",
    "efs": "GB-month",
    "gp3": "GB-month",
    "nat_gateway_gb": "GB",
    "object_storage": "GB-month",
}
"""Of rates that are not by the hour."""


def price(items: Sequence[PriceItem]) -> dict[str, Any]:
    """USD an hour and a month (730 hours). ``complete`` is false when a line has no known price; then there is no sum,
    and what is known of it stands beside."""
    return {
        "currency": "USD",
        **sums([item.hour for item in items]),
        "items": [
            {
                "name": item.name,
                "quantity": item.quantity,
                "hour": None if item.hour is None else round(item.hour, 6),
                "month": None if item.hour is None else round(item.hour * HOURS_A_MONTH, 2),
            }
            for item in items
        ],
    }


def sums(hours: Sequence[float | None]) -> dict[str, Any]:
    """The fields of a price that add up what its lines cost an hour."""
    known_hour = sum(hour for hour in hours if hour is not None)
    complete = None not in hours
    amounts = {"known_hour": round(known_hour, 6), "known_month": round(known_hour * HOURS_A_MONTH, 2)}
    return {
        "hour": amounts["known_hour"] if complete else None,
        "month": amounts["known_month"] if complete else None,
        "complete": complete,
        **amounts,
    }


def plan_of(items: Sequence[PriceItem], **parts: str | Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The body of a dry run's answer; of ``verdict``, ``groups``, ``creates``, ``changes``, ``deletes``, ``rejected``
    and ``warnings`` each is empty that is not given."""
    empty: dict[str, Any] = {
        "verdict": "",
        "groups": [],
        "creates": [],
        "changes": [],
        "deletes": [],
        "price_before": None,
        "steps": [],
        "rejected": [],
        "warnings": [],
    }
    return {**empty, "price": price(items), **parts}


def removal_verdict(count: int, locations: str, items: Sequence[PriceItem]) -> str:
    """The first sentence of the plan of a deletion: how much goes, where, and what that saves."""
    things = f"{count} thing{'s' * (count != 1)}"
    where = f", in {locations}," if locations else ""
    if not items:
        return f"{things}{where} would be removed."
    total = price(items)
    if not total["complete"] and not total["known_month"]:
        return f"{things}{where} would be removed; what it saves is not known."
    least = "" if total["complete"] else "at least "
    return f"{things}{where} would be removed; it saves {least}{total['known_month']:.2f} USD a month."


def kept_warnings(minutes: int, items: Sequence[PriceItem]) -> list[dict[str, str]]:
    """Warning of a plan about a machine that is kept for ``minutes`` if it does not come up; nothing for none."""
    if not minutes:
        return []
    total = price(items)
    cost = f"at most {total['hour'] * minutes / 60:.2f} USD" if total["complete"] else "at a price that is not known"
    text = f"If the machine does not come up, it is kept for {minutes} minutes and billed meanwhile: {cost}."
    return [{"pointer": "/keep_failed", "detail": text}]


def list_prices(offers: RegionOffers, name: str = "*", kind: str = "") -> list[dict[str, Any]]:
    """Instance types and rates in order of name. ``name`` is a pattern in which ``*`` stands for any text, ``kind`` is
    ``instance`` or ``rate``, or empty for both."""
    rates = (_item(offers, RATE, item, UNITS.get(item, "hour"), price) for item, price in offers.rates.items())
    types = (_item(offers, INSTANCE, offer.name, "hour", offer.usd_hour) for offer in offers.instances.values())
    items = [item for item in (*rates, *types) if kind in ("", item["kind"]) and fnmatchcase(str(item["name"]), name)]
    return sorted(items, key=lambda item: str(item["name"]))


INSTANCE, RATE = "instance", "rate"


def _item(offers: RegionOffers, kind: str, name: str, unit: str, price: float | None) -> dict[str, Any]:
    return {"region": offers.region, "kind": kind, "name": name, "unit": unit, "currency": "USD", "price": price}
