"""A linear programme by columns: the cheapest fractional amount of columns that covers all rows.

Floats, for guidance alone: what is proven is proven from the result by whole numbers (``certificate``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stockyard.domain.values.frozen import dataclass

_TINY = 1e-9

Entries = tuple[tuple[int, float], ...]
"""The rows that a column covers, and by how much."""


@dataclass(frozen=True, slots=True)
class Column:
    """One way to cover rows. ``tag`` says what it stands for."""

    cost: float
    entries: Entries
    tag: tuple[int, ...] = ()


class Simplex:
    """The revised simplex method over rows ``>= demand``, from one column for each row that covers that row alone."""

    def __init__(self, demand: Sequence[float], start: Sequence[Column]) -> None:
        self.rows = len(demand)
        self.basis = list(start)
        pivots = [column.entries[0][1] for column in start]
        self._inverse = [
            [1.0 / pivots[row] if index == row else 0.0 for index in range(self.rows)] for row in range(self.rows)
        ]
        self.amounts = [amount / pivot for amount, pivot in zip(demand, pivots, strict=True)]
        self.values = [column.cost / pivot for column, pivot in zip(start, pivots, strict=True)]
        """The dual: what a unit of each row is worth."""

    def reduced_cost(self, column: Column) -> float:
        """Cost of a column beyond the worth of what it covers; below zero, it makes the cover cheaper."""
        return column.cost - sum(self.values[row] * amount for row, amount in column.entries)

    def enter(self, column: Column) -> bool:
        """Bring a column into the basis. False when it would grow without end."""
        inverse, rows = self._inverse, range(self.rows)
        direction = [0.0] * self.rows
        for entry, amount in column.entries:
            for row in rows:
                direction[row] += inverse[row][entry] * amount
        best, leaving = 0.0, -1
        for row in rows:
            if direction[row] > _TINY:
                ratio = self.amounts[row] / direction[row]
                if leaving < 0 or ratio < best - 1e-12 or (ratio <= best and direction[row] > direction[leaving]):
                    best, leaving = ratio, row
        if leaving < 0:
            return False
        reduced, pivot = self.reduced_cost(column), direction[leaving]
        pivot_row = inverse[leaving] = [amount / pivot for amount in inverse[leaving]]
        for row in rows:
            factor = direction[row]
            if row != leaving and (factor > 1e-13 or factor < -1e-13):
                inverse[row] = [a - factor * b for a, b in zip(inverse[row], pivot_row, strict=True)]
                self.amounts[row] = max(self.amounts[row] - factor * best, 0.0)
        self.amounts[leaving] = best
        self.values = [value + reduced * b for value, b in zip(self.values, pivot_row, strict=True)]
        self.basis[leaving] = column
        return True

    def enter_surplus(self) -> bool:
        """Let the row whose value is furthest below zero be covered by more than is asked for."""
        row = min(range(self.rows), key=self.values.__getitem__)
        scale = max(map(abs, self.values), default=0.0)
        return self.values[row] < -_TINY * scale and self.enter(Column(0.0, ((row, -1.0),)))

    def run(self, best: Callable[[Sequence[float]], Sequence[Column]], rounds: int) -> int:
        """Enter the columns that ``best`` names for the current values until none helps. Returns the rounds used."""
        for number in range(rounds if self.rows else 0):
            if self.enter_surplus():
                continue
            helpful = [column for column in best(self.values) if self.reduced_cost(column) < -_TINY * column.cost]
            entered = False
            for column in helpful:
                if self.reduced_cost(column) < -_TINY * column.cost:
                    entered = self.enter(column) or entered
            if not entered:
                return number
        return rounds if self.rows else 0
