"""Prices of the offline EC2 catalogue."""

from __future__ import annotations

from typing import Literal

from stockyard.domain.models.base import View


class PriceView(View):
    """What one thing costs in a region: ``price`` in ``currency`` per ``unit``, null where it is not known.

    An ``instance`` is a machine of that type, on demand, for an hour; a ``rate`` is of anything else: an hour of it, a
    GB that goes through it, or a GB that is kept for a month (``GB-month``).
    """

    region: str
    kind: Literal["instance", "rate"]
    name: str
    unit: Literal["hour", "GB", "GB-month"]
    currency: str
    price: float | None
