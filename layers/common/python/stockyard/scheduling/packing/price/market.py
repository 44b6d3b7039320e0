"""The offers as the search sees them: the worthwhile ones, cheapest first, with a mask for each amount of a resource.

Amounts are in reduced units: the greatest common divisor of all requests of a resource. Every load is a multiple of
it, so a room may be rounded down to one, and numbers stay small.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from math import gcd

from stockyard.scheduling.packing.price.model import Counts, FreeProblem, Vector


class Thresholds:
    """Index of the rooms that hold a load: rooms are bits, in the order in which they came."""

    __slots__ = ("_amounts", "_masks", "every")

    def __init__(self, rooms: Sequence[Vector]) -> None:
        self.every = (1 << len(rooms)) - 1
        self._amounts: list[list[int]] = []
        self._masks: list[list[int]] = []
        for amounts in zip(*rooms, strict=True):
            by_amount: dict[int, int] = {}
            for number, amount in enumerate(amounts):
                by_amount[amount] = by_amount.get(amount, 0) | 1 << number
            distinct, masks, so_far = sorted(by_amount), list[int](), 0
            for amount in reversed(distinct):
                so_far |= by_amount[amount]
                masks.append(so_far)
            self._amounts.append(distinct)
            self._masks.append([*reversed(masks), 0])

    def holding(self, load: Iterable[int]) -> int:
        """The rooms that hold ``load``."""
        mask = self.every
        for amount, amounts, masks in zip(load, self._amounts, self._masks, strict=False):
            if amount > 0:
                mask &= masks[bisect_left(amounts, amount)]
        return mask


class Market:
    """Shapes and columns of a problem. A column is an offer that no other one beats, in order of price.

    ``barred`` are offers that may not be used (a mask).
    """

    __slots__ = (
        "admits",
        "classes",
        "count",
        "guard",
        "holders",
        "hubs",
        "offers",
        "packed",
        "prices",
        "requests",
        "rooms",
        "scarce",
        "shifts",
        "thresholds",
        "units",
        "widths",
    )

    def __init__(self, problem: FreeProblem, barred: int = 0) -> None:
        self.units = units(problem)
        self.count: Counts = {number: shape.count for number, shape in enumerate(problem.shapes)}
        self.requests = [self.reduce(shape.requests) for shape in problem.shapes]
        masks = sorted({shape.offers for shape in problem.shapes})
        self.classes = [masks.index(shape.offers) for shape in problem.shapes]
        rooms = [self.reduce(offer.room) for offer in problem.offers]
        usable = [
            number
            for number in range(len(rooms))
            if not barred >> number & 1 and any(mask >> number & 1 for mask in masks) and min(rooms[number]) >= 0
        ]
        usable.sort(key=lambda n: (problem.offers[n].price, [-amount for amount in rooms[n]], problem.offers[n].name))
        admitted = {n: sum(1 << dimension for dimension, mask in enumerate(masks) if mask >> n & 1) for n in usable}
        self.offers = list(undominated(problem, usable, rooms, admitted))
        self.rooms = [rooms[number] for number in self.offers]
        self.prices = [problem.offers[number].price for number in self.offers]
        self.thresholds = Thresholds(self.rooms)
        hubs = sorted({admitted[number] for number in self.offers})
        self.admits = [admitted[number] for number in self.offers]
        self.hubs = [hubs.index(admitted[number]) for number in self.offers]
        """For each column the number of its hub: columns that admit the same classes."""
        by_class = [
            sum(1 << column for column, number in enumerate(self.offers) if mask >> number & 1) for mask in masks
        ]
        self.holders = [
            by_class[group] & self.thresholds.holding(request)
            for group, request in zip(self.classes, self.requests, strict=True)
        ]
        """For each shape the columns that can hold a pod of it."""
        self.scarce = sum(
            1 << column for column, number in enumerate(self.offers) if problem.offers[number].limit is not None
        )
        self._pack(problem)

    def _pack(self, problem: FreeProblem) -> None:
        """Lay vectors out in one integer, with a bit above each amount: a bit that falls says that it does not fit."""
        rooms = [*self.rooms, *(self.reduce(space.room) for space in problem.spaces)]
        self.shifts, self.widths, position = [], [], 0
        for dimension in range(len(self.units)):
            total = sum(self.requests[shape][dimension] * count for shape, count in self.count.items())
            width = (
                max(total, *(room[dimension] for room in rooms), 1).bit_length() if rooms else total.bit_length() + 1
            )
            self.shifts.append(position)
            self.widths.append(width)
            position += width + 1
        self.guard = sum(1 << shift + width for shift, width in zip(self.shifts, self.widths, strict=True))
        self.packed = [self.pack(request) for request in self.requests]

    def pack(self, amounts: Iterable[int]) -> int:
        """The vector as one integer, without guards."""
        return sum(max(amount, 0) << shift for amount, shift in zip(amounts, self.shifts, strict=True))

    def unpack(self, state: int) -> list[int]:
        """The vector of an integer, guards or not."""
        return [state >> shift & (1 << width) - 1 for shift, width in zip(self.shifts, self.widths, strict=True)]

    def reduce(self, amounts: Vector) -> Vector:
        """The vector in reduced units, rounded down."""
        return tuple(amount // unit for amount, unit in zip(amounts, self.units, strict=True))

    def most(self, state: int, shape: int, count: int) -> int:
        """Number of pods of a shape, at most ``count``, that fit into a packed free room."""
        for amount, request in zip(self.unpack(state), self.requests[shape], strict=True):
            if request:
                count = min(count, amount // request)
        return count

    def load(self, counts: Counts) -> list[int]:
        """Sum of the requests of pods."""
        total = [0] * len(self.units)
        for shape, count in counts.items():
            for dimension, amount in enumerate(self.requests[shape]):
                total[dimension] += amount * count
        return total

    def able(self, counts: Iterable[int]) -> int:
        """The columns that admit and hold each of some shapes."""
        mask = self.thresholds.every
        for shape in counts:
            mask &= self.holders[shape]
        return mask

    def admitted(self, column: int, shapes: Iterable[int]) -> int:
        """The shapes among ``shapes`` that may use a column, as a mask."""
        return sum(1 << shape for shape in shapes if self.admits[column] >> self.classes[shape] & 1)

    def holding(self, load: Iterable[int]) -> int:
        """The columns with room for ``load``."""
        return self.thresholds.holding(load)

    def cheapest(self, counts: Counts) -> int:
        """The cheapest column that can carry the pods; -1 when there is none."""
        return lowest(self.able(counts) & self.thresholds.holding(self.load(counts)))


def lowest(mask: int) -> int:
    """The number of the lowest bit; -1 when there is none."""
    return (mask & -mask).bit_length() - 1


def units(problem: FreeProblem) -> Vector:
    """The greatest common divisor of what is requested of each resource; 1 where nothing is."""
    return tuple(gcd(*amounts) or 1 for amounts in zip(*(shape.requests for shape in problem.shapes), strict=True))


def undominated(
    problem: FreeProblem, ordered: Sequence[int], rooms: Sequence[Vector], admitted: dict[int, int]
) -> Iterator[int]:
    """Offers in order of price, without those that an earlier one beats: as much room, open to the same classes or
    more.

    An offer of which there are few beats nothing.
    """
    thresholds = Thresholds([rooms[number] for number in ordered])
    by_class: dict[int, int] = {}
    endless = 0
    for dimension, number in enumerate(ordered):
        endless |= (problem.offers[number].limit is None) << dimension
        by_class[admitted[number]] = by_class.get(admitted[number], 0) | 1 << dimension
    wider = {classes: sum(mask for more, mask in by_class.items() if more & classes == classes) for classes in by_class}
    for dimension, number in enumerate(ordered):
        earlier = (1 << dimension) - 1 & endless & wider[admitted[number]]
        if not thresholds.holding(rooms[number]) & earlier:
            yield number
