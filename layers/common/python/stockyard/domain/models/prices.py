"""Prices of the offline EC2 catalogue."""

from __future__ import annotations

from stockyard.domain.models.base import View


class PriceView(View):
    """What one thing costs in a region."""

    region: str
    """The region that the price holds in."""
    name: str
    """What is priced, such as a node type."""
    unit: str
    """What is counted, such as an hour."""
    currency: str
    """The currency of the price."""
    price: float | None
    """The price of one unit; null where it is not known."""
