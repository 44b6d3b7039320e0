"""The lines of a bill."""

from __future__ import annotations

from dataclasses import dataclass

HOURS_A_MONTH = 730


@dataclass(frozen=True, slots=True)
class PriceItem:
    """One line of a price. ``hour`` is USD, None where the catalogue does not know it."""

    name: str
    quantity: int
    hour: float | None
