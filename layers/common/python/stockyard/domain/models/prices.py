"""Prices of the offline EC2 catalogue."""

from __future__ import annotations

from typing import Literal

from stockyard.domain.models.base import View


class PriceView(View):
    """Price of one thing in a region."""

    region: str
    """The region that the price holds in."""
    kind: Literal["instance", "rate"]
    """``instance``: a machine of that type, on demand; ``rate``: anything else."""
    name: str
    """What is priced: an instance type, or an item such as ``nat_gateway``."""
    unit: Literal["hour", "GB", "GB-month"]
    """What the price is for: an hour of it, a GB that goes through it, or a GB that is kept for a month."""
    currency: str
    """The currency of the price."""
    price: float | None
    """The price of one unit; null where it is not known."""
