"""The linear relaxation: pods as a liquid, in classes of shapes that may use the same offers.

Each column gives its room of each resource to one class that it admits. The values that result guide the search, and
``certify`` makes a proven bound of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from stockyard.domain.values.frozen import dataclass
from stockyard.scheduling.packing.price.linear import Column, Simplex
from stockyard.scheduling.packing.price.model import Certificate, Offer, Space, Vector

ROUNDS = 2_000
_SCALE = 1 << 64
_TIE = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class Guide:
    """Worth of a unit of each resource to each class, and how many of each column a liquid would buy: floats."""

    values: tuple[tuple[float, ...], ...]
    amounts: dict[int, float]
    hubs: tuple[int, ...]
    """For each class the hub, by its place among the sets of classes, that carries most of what it is worth."""
    rounds: int


class Relaxation:
    """The linear programme of columns with ``rooms`` and ``prices``; bit g of ``admits``: class g may enter."""

    def __init__(self, rooms: Sequence[Vector], prices: Sequence[int], admits: Sequence[int], classes: int) -> None:
        self._rooms, self._prices = rooms, prices
        self._classes, self._width = classes, len(rooms[0]) if rooms else 0
        by_hub: dict[int, list[int]] = {}
        for column, mask in enumerate(admits):
            by_hub.setdefault(mask, []).append(column)
        self._hubs = [
            ([group for group in range(classes) if mask >> group & 1], hub) for mask, hub in sorted(by_hub.items())
        ]

    def solve(self, demand: Sequence[Sequence[int]]) -> Guide:
        """The optimum for a demand by class, or where it stood after ``ROUNDS``. Each class has a column for it."""
        rows = [(group, index) for group, d in enumerate(demand) for index, amount in enumerate(d) if amount > 0]
        number = {row: position for position, row in enumerate(rows)}
        start = [self._start(position, *row) for position, row in enumerate(rows)]
        simplex = Simplex([float(demand[group][index]) for group, index in rows], start)
        rounds = simplex.run(lambda values: self._best(values, number), ROUNDS)
        values = [[0.0] * self._width for _ in demand]
        for (group, index), value in zip(rows, simplex.values, strict=True):
            values[group][index] = max(value, 0.0)
        amounts: dict[int, float] = {}
        for column, amount in zip(simplex.basis, simplex.amounts, strict=True):
            for tag in column.tag:
                amounts[tag] = amounts.get(tag, 0.0) + amount
        return Guide(tuple(map(tuple, values)), amounts, self._most(simplex, rows), rounds)

    def _most(self, simplex: Simplex, rows: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        hub_of = {column: number for number, (_, hub) in enumerate(self._hubs) for column in hub}
        worth: list[dict[int, float]] = [{} for _ in range(self._classes)]
        for column, amount in zip(simplex.basis, simplex.amounts, strict=True):
            for row, part in column.entries if column.tag else ():
                carried = worth[rows[row][0]]
                hub = hub_of[column.tag[0]]
                carried[hub] = carried.get(hub, 0.0) + amount * part * max(simplex.values[row], 0.0)
        return tuple(max(carried, key=lambda hub: (carried[hub], -hub), default=0) for carried in worth)

    def _start(self, row: int, group: int, index: int) -> Column:
        """The column that covers one row for the least money."""
        usable = [column for admits, hub in self._hubs if group in admits for column in hub]
        best = min(
            (column for column in usable if self._rooms[column][index] > 0),
            key=lambda column: (self._prices[column] / self._rooms[column][index], -column),
        )
        return Column(float(self._prices[best]), ((row, float(self._rooms[best][index])),), (best,))

    def _best(self, values: Sequence[float], number: dict[tuple[int, int], int]) -> list[Column]:
        """Columns, one of each hub, whose room is worth most for the price; of equals the largest, which is the
        last."""
        columns = []
        for admits, hub in self._hubs:
            rows, top = list[int](), list[float]()
            for index in range(self._width):
                candidates = [number[group, index] for group in admits if (group, index) in number]
                row = max(candidates, key=values.__getitem__, default=-1)
                rows.append(row)
                top.append(max(values[row], 0.0) if row >= 0 else 0.0)
            best, ratio = -1, 0.0
            for column in hub:
                worth = sum([value * amount for value, amount in zip(top, self._rooms[column], strict=True)])
                if worth > 0 and worth >= ratio * self._prices[column] * _TIE:
                    best, ratio = column, worth / (self._prices[column] or 1e-9)
            if best >= 0:
                room = self._rooms[best]
                entries = tuple(
                    (row, float(room[index])) for index, row in enumerate(rows) if top[index] > 0 and room[index] > 0
                )
                columns.append(Column(float(self._prices[best]), entries, (best,)))
        return columns


def certify(
    values: Sequence[Sequence[float]],
    demand: Sequence[Sequence[int]],
    offers: Sequence[Offer],
    admits: Sequence[int],
    spaces: Sequence[Space],
    classes: Sequence[int],
) -> Certificate:
    """A bound that holds for any ``values``, by whole numbers: each of ``offers`` is compared, worthwhile or not.

    ``admits`` says for each offer which classes may use it. Spaces carry for nothing what their room is worth to the
    class that values it most.
    """
    whole = tuple(tuple(int(value * _SCALE) for value in row) for row in values)
    tops: dict[int, list[int]] = {}
    most, price = 0, 1
    for offer, mask in zip(offers, admits, strict=True):
        if mask not in tops:
            within = [row for group, row in enumerate(whole) if mask >> group & 1]
            tops[mask] = [max(column) for column in zip(*within, strict=True)]
        worth = sum([value * max(amount, 0) for value, amount in zip(tops[mask], offer.room, strict=False)])
        if price and worth * price > most * offer.price:
            most, price = worth, offer.price
    total = sum(_worth(row, amounts) for row, amounts in zip(whole, demand, strict=True))
    top = [max(column) for column in zip(*whole, strict=True)]
    total -= sum(_worth(top, space.room) for space in spaces)
    if not most or not price:
        return Certificate(tuple(classes), whole, _SCALE, Fraction(0), Fraction(0))
    worst = Fraction(most, price * _SCALE)
    return Certificate(tuple(classes), whole, _SCALE, worst, max(Fraction(total, _SCALE) / worst, Fraction(0)))


def _worth(values: Sequence[int], amounts: Sequence[int]) -> int:
    return sum(value * max(amount, 0) for value, amount in zip(values, amounts, strict=True))
