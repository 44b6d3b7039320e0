"""Prices of the offline EC2 catalogue."""

from __future__ import annotations

from stockyard.domain.models.base import View


class PriceView(View):
    """What one thing costs in a region: ``price`` in ``currency`` per ``unit``, null where it is not known."""

    region: str
    name: str
    unit: str
    currency: str
    price: float | None
