"""Limits that remain to the pools of one packing: resources by the capacity of nodes, nodes, money, places of types."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping

from stockyard.scheduling.packing.rows import Row, Rows
from stockyard.scheduling.table import mask_of

NODES = "nodes"
"""The limit that counts nodes, in thousandths like the others."""
MONEY = "money"
"""The limit in USD an hour."""


class Limits:
    """Remaining limits of each pool while nodes are planned. Each planned node takes what its first row takes."""

    def __init__(self, rows: Rows, places: Mapping[str, int]) -> None:
        self._rows = rows
        numbers: defaultdict[str, list[int]] = defaultdict(list)
        for number, row in enumerate(rows.rows):
            if row.node_type.name in places:
                numbers[row.node_type.name].append(number)
        self._of_type = {name: mask_of(listed, len(rows.rows)) for name, listed in numbers.items()}
        self.places = {name: places[name] for name in numbers}
        self.full = sum(mask for name, mask in self._of_type.items() if self.places[name] < 1)
        """The rows of types that have no place left."""
        self.remaining: list[dict[str, float]] = []
        for pool in rows.pools:
            remaining: dict[str, float] = {name: limit - pool.used.get(name, 0) for name, limit in pool.limits.items()}
            if pool.money is not None:
                remaining[MONEY] = pool.money - pool.spent
            self.remaining.append(remaining)
        self._at_most: dict[str, tuple[list[float], list[int]]] = {}

    def binds(self, pool: int) -> bool:
        """Whether anything limits the nodes of the pool."""
        return bool(self.remaining[pool] or self.places)

    def within(self, pool: int, possible: int, before: Row | None) -> int:
        """The rows that the pool may have in place of ``before``, which is given back; None for a new node."""
        own_type = self._of_type.get(before.node_type.name, 0) if before is not None else 0
        possible &= ~self.full | own_type
        for name in self.remaining[pool]:
            possible &= self.within_one(pool, name, before)
        return possible

    def within_one(self, pool: int, name: str, before: Row | None = None) -> int:
        """As ``within``, for one of the things that the pool limits."""
        allowed = self.remaining[pool][name] + (share_of(before, name) if before is not None else 0)
        amounts, masks = self._at_most.get(name) or self._thresholds(name)
        index = bisect_right(amounts, allowed)
        return masks[index - 1] if index else 0

    def take(self, pool: int, row: Row, before: Row | None) -> None:
        """Count a node of this row, in place of the one of ``before``."""
        remaining = self.remaining[pool]
        for name in remaining:
            remaining[name] -= share_of(row, name) - (share_of(before, name) if before is not None else 0)
        if before is not None:
            self._count_slots(before.node_type.name, 1)
        self._count_slots(row.node_type.name, -1)

    def _count_slots(self, name: str, count: int) -> None:
        if name in self.places:
            self.places[name] += count
            self.full = self.full & ~self._of_type[name] | (self._of_type[name] if self.places[name] < 1 else 0)

    def copies(self, pool: int, row: Row) -> int:
        """Number of further nodes of this row that the pool may have; a large number when nothing limits it."""
        counts = [
            int(amount // share) for name, amount in self.remaining[pool].items() if (share := share_of(row, name)) > 0
        ]
        counts.append(self.places.get(row.node_type.name, 2**31))
        return max(0, min(counts))

    def _thresholds(self, name: str) -> tuple[list[float], list[int]]:
        """The distinct amounts that rows take, ascending, and for each the rows that take at most as much."""
        numbers: defaultdict[float, list[int]] = defaultdict(list)
        for number, row in enumerate(self._rows.rows):
            numbers[share_of(row, name)].append(number)
        amounts, masks, rows = sorted(numbers), [], 0
        for amount in amounts:
            rows |= mask_of(numbers[amount], len(self._rows.rows))
            masks.append(rows)
        self._at_most[name] = thresholds = (amounts, masks)
        return thresholds


def share_of(row: Row, name: str) -> float:
    """Amount of a limited thing that a node of the row takes."""
    if name == NODES:
        return 1000
    if name == MONEY:
        return row.usd_hour
    return row.node_type.capacity.get(name, 0)
