"""The lines of a bill."""

from __future__ import annotations

from dataclasses import field

from stockyard.domain.values.frozen import dataclass

HOURS_A_MONTH = 730
MEMBER = "control_plane/instance"
"""The line of the ledger that stands for a member of a control plane."""


@dataclass(frozen=True, slots=True)
class PriceItem:
    """One line of a price. ``hour`` is USD, None where the catalogue does not know it."""

    name: str
    quantity: int
    hour: float | None
    made_as: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    """Lines of the ledger that stand for it, as ``phase/kind``, each with how much of the quantity one of them stands
    for. Empty: it counts as soon as anything of its cluster is there."""


def by_the_hour(month: float | None) -> float | None:
    """USD an hour of what is billed by the month; None where that is not known."""
    return None if month is None else month / HOURS_A_MONTH
