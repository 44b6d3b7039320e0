"""What dry runs answer: plans, and in them the lines of a bill, by the hour and by the month."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.domain.prices import HOURS_A_MONTH, PriceItem


def price(items: Sequence[PriceItem]) -> dict[str, Any]:
    """USD an hour and a month (730 hours). ``complete`` is false when a line has no known price."""
    hour = sum(item.hour for item in items if item.hour is not None)
    return {
        "currency": "USD",
        "hour": round(hour, 6),
        "month": round(hour * HOURS_A_MONTH, 2),
        "complete": all(item.hour is not None for item in items),
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


def plan_of(items: Sequence[PriceItem], **parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The body of a dry run's answer; of ``creates``, ``changes``, ``deletes``, ``rejected`` and ``warnings`` each is
    empty that is not given."""
    return {"creates": [], "changes": [], "deletes": [], "price": price(items), "rejected": [], "warnings": [], **parts}
