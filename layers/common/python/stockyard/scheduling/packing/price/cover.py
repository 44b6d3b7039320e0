"""Covers: sets of columns whose room together is at least a demand, cheapest first, by branch and bound.

A demand has rows: some columns (a mask) and what they alone must carry. The first row is of all columns; others are of
shapes that only some columns hold or admit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappush, heapreplace
from operator import mul

from stockyard.scheduling.packing.price.market import Market, Thresholds, lowest
from stockyard.scheduling.packing.price.model import Counts, Meter

_TINY = 1e-9

Rows = tuple[tuple[int, tuple[int, ...]], ...]
"""Columns, and the amounts that they must carry."""


def rows_of(market: Market, pods: Counts, nested: int) -> Rows:
    """The rows of some pods: all of them together, then up to ``nested`` sets of those that few columns can hold."""
    by_mask: dict[int, Counts] = {}
    for shape, count in pods.items():
        by_mask.setdefault(market.holders[shape], {})[shape] = count
    every = 0
    for mask in by_mask:
        every |= mask
    rows = [(every, tuple(market.load(pods)))]
    narrow = sorted((mask for mask in by_mask if mask != every), key=lambda mask: (mask.bit_count(), mask))
    for mask in narrow[:nested]:
        within: Counts = {}
        for other, counts in by_mask.items():
            if other & ~mask == 0:
                within.update(counts)
        rows.append((mask, tuple(market.load(within))))
    return tuple(rows)


@dataclass(slots=True)
class Covers:
    """A search for covers of ``rows`` below ``ceiling``, at most ``depth`` columns each.

    ``values`` are what a unit of each resource is worth, the same to all: they prune. The ``most`` cheapest are kept.
    """

    prices: Sequence[int]
    rooms: Sequence[Sequence[int]]
    thresholds: Thresholds
    """Of ``rooms``."""
    values: Sequence[float]
    rows: Rows
    meter: Meter
    most: int = 30
    limit: int = 0
    best: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    """A heap of (-price, columns)."""
    ceiling: float = 0.0
    complete: bool = True
    """Whether no cover below the ceiling was passed over, for want of steps or of depth."""
    _costs: list[float] = field(default_factory=list)
    _order: list[int] = field(default_factory=list)

    def search(self, depth: int, ceiling: float) -> list[tuple[int, tuple[int, ...]]]:
        """The cheapest covers below ``ceiling``: price and columns, in order of price, then columns."""
        self.best, self.complete, self.ceiling = [], True, ceiling
        prices = self.prices
        self._costs = [
            max(price - sum(map(mul, self.values, room)), 0.0) for price, room in zip(prices, self.rooms, strict=True)
        ]
        self._order = sorted(range(len(prices)), key=lambda column: (self._costs[column], -prices[column], column))
        self._branch(depth, len(prices) - 1, 0, self.rows, ())
        return sorted((-price, columns) for price, columns in self.best)

    def _add(self, price: int, columns: tuple[int, ...]) -> None:
        item = (-price, columns)
        if len(self.best) < self.most:
            heappush(self.best, item)
        elif item > self.best[0]:
            heapreplace(self.best, item)
        if len(self.best) == self.most:
            self.ceiling = min(self.ceiling, float(-self.best[0][0]))

    def _branch(self, depth: int, highest: int, price: int, rows: Rows, columns: tuple[int, ...]) -> None:
        """Add one more column, none dearer than the last one."""
        if self.meter.spent >= self.limit:
            self.complete = False
            return
        self.meter.spent += 3
        prices, rooms, values, costs = self.prices, self.rooms, self.values, self._costs
        allowed = (1 << highest + 1) - 1
        single = self._single(rows, allowed)
        if single >= 0 and price + prices[single] < self.ceiling:
            self._add(price + prices[single], (*columns, single))
        missing = rows[0][1]
        worth = sum(map(mul, values, missing))
        slack = self.ceiling - price - worth
        if slack <= 0:
            return
        if depth <= 1:
            self.complete = False
            return
        least = worth / depth - _TINY * worth
        first = bisect_left(prices, least)
        ceiling_single = prices[single] if single >= 0 else float("inf")
        for column in self._order:
            cost = costs[column]
            if cost >= slack:
                break
            if column > highest or column < first or prices[column] >= ceiling_single:
                continue
            self.meter.spent += 1
            room = rooms[column]
            remaining = tuple([m - r if m > r else 0 for m, r in zip(missing, room, strict=True)])
            paid = price + prices[column]
            if paid + sum(map(mul, values, remaining)) >= self.ceiling:
                continue
            lessened: Rows = ((rows[0][0], remaining),)
            if len(rows) > 1:
                lessened += self._less(rows[1:], column, room)
            self._branch(depth - 1, column, paid, lessened, (*columns, column))
            slack = self.ceiling - price - worth

    def _less(self, rows: Rows, column: int, room: Sequence[int]) -> Rows:
        lessened = []
        for mask, missing in rows:
            if mask >> column & 1:
                remaining = tuple([m - r if m > r else 0 for m, r in zip(missing, room, strict=True)])
                if any(remaining):
                    lessened.append((mask, remaining))
            else:
                lessened.append((mask, missing))
        return tuple(lessened)

    def _single(self, rows: Rows, allowed: int) -> int:
        """The cheapest column that covers all that is missing, alone."""
        mask = allowed & rows[0][0] & self.thresholds.holding(rows[0][1])
        for able, missing in rows[1:]:
            mask &= able & self.thresholds.holding(missing)
        return lowest(mask)
