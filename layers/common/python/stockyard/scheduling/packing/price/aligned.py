"""Aligned packing: pods into a fixed set of nodes, so that the free room of each runs out in all resources at once.

Large shapes come first. A pod that leans to memory, compared with all that is still to come, goes where the free room
leans to memory most. As the mix of what comes turns, so does what is wanted of a node; small pods come last and close
the gaps. Nodes with equal free room are looked at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stockyard.scheduling.packing.price.market import Market
from stockyard.scheduling.packing.price.model import Counts, Meter

Style = tuple[float, float]
"""How little a resource counts of which much stays free: the power of the share that is used. And how much more the
lean counts than likeness: 2 looks for the likest free room, more for the one that leans most."""
STYLES: tuple[Style, ...] = ((4, 2), (2, 4))
"""Each packs some problems that the other does not."""
RARE_STYLES: tuple[Style, ...] = ((3, 2), (2, 3), (8, 2), (1, 4), (4, 6))
"""These seldom do; they are for the steps that remain."""

Key = tuple[int, int]
"""The state of nodes that are equal: packed free room with guards, and the shapes that may join, as a mask."""
Amounts = tuple[float, float, float]
"""What a guideline reads of a packed vector."""


@dataclass(slots=True)
class Slot:
    """A node to fill. ``state`` is its packed free room with guards; bit n of ``shapes`` says that shape n may join."""

    state: int
    shapes: int
    counts: Counts


class Guideline:
    """The three resources that are used most, which decide where a pod goes, and how much each of them counts."""

    __slots__ = ("_masks", "_shifts", "center", "pull", "weights")

    def __init__(self, market: Market, load: Sequence[int], room: Sequence[int], style: Style = STYLES[0]) -> None:
        """``load`` is what is packed in all, ``room`` all that there is for it."""
        sharpness, self.pull = style
        fill = [min(amount / most, 1.0) if most > 0 else 0.0 for amount, most in zip(load, room, strict=True)]
        order = sorted(range(len(load)), key=lambda index: (-fill[index], index))[:3]
        weights = [float(fill[index] ** sharpness) for index in order]
        padded = (*order, order[0], order[0])[:3]
        self._shifts = tuple(market.shifts[index] for index in padded)
        self._masks = tuple((1 << market.widths[index]) - 1 for index in padded)
        self.weights: Sequence[float] = (*weights, 0.0, 0.0)[:3]
        self.center = [weight / (sum(weights) or 1.0) for weight in self.weights]

    def read(self, state: int) -> Amounts:
        """The amounts of a packed vector."""
        (first, second, third), masks = self._shifts, self._masks
        return state >> first & masks[0], state >> second & masks[1], state >> third & masks[2]


class _Taste:
    """Preferences of a shape, while ``pending`` is still to be packed, the shape included."""

    __slots__ = ("_center", "_guard", "_lean", "_request", "_scales", "_shape")

    def __init__(self, market: Market, guideline: Guideline, shape: int, request: Amounts, pending: Amounts) -> None:
        self._scales = [w / max(total, 1.0) for w, total in zip(guideline.weights, pending, strict=True)]
        shares = [amount * scale for amount, scale in zip(request, self._scales, strict=True)]
        whole = sum(shares) or 1.0
        self._center = guideline.center
        self._lean = [
            guideline.pull * (share / whole - middle) for share, middle in zip(shares, self._center, strict=True)
        ]
        self._shape, self._request, self._guard = shape, market.packed[shape], market.guard

    def scored(self, states: Mapping[Key, Amounts]) -> list[tuple[float, Key]]:
        """The states with room for a pod of the shape, and how much it likes each."""
        guard, request, shape = self._guard, self._request, self._shape
        (k, m, n), (e, f, g), (a, b, c) = self._scales, self._center, self._lean
        scored = []
        for key, (first, second, third) in states.items():
            if (key[0] - request) & guard == guard and key[1] >> shape & 1:
                u, v, t = first * k, second * m, third * n
                whole = u + v + t or 1.0
                u, v, t = u / whole - e, v / whole - f, t / whole - g
                scored.append((a * u + b * v + c * t - u * u - v * v - t * t, key))
        return scored


def pack(market: Market, slots: Sequence[Slot], pods: Counts, guideline: Guideline, meter: Meter) -> Counts:
    """Put ``pods`` into ``slots``, which are changed; what comes back found no room."""
    buckets: dict[Key, list[Slot]] = {}
    for slot in slots:
        buckets.setdefault((slot.state, slot.shapes), []).append(slot)
    amounts = {key: guideline.read(key[0]) for key in buckets}
    requests = {shape: guideline.read(market.packed[shape]) for shape in pods}
    first, second, third = (sum(requests[shape][n] * count for shape, count in pods.items()) for n in range(3))
    remaining: Counts = {}
    for shape in _largest_first(requests, (first, second, third)):
        count, (a, b, c) = pods[shape], requests[shape]
        taste = _Taste(market, guideline, shape, (a, b, c), (first, second, third))
        first, second, third = first - a * count, second - b * count, third - c * count
        meter.spent += 4 + len(amounts)
        unplaced = _place(market, shape, count, len(slots), taste, guideline, buckets, amounts, meter)
        if unplaced:
            remaining[shape] = unplaced
    return remaining


def _place(
    market: Market,
    shape: int,
    count: int,
    nodes: int,
    taste: _Taste,
    guideline: Guideline,
    buckets: dict[Key, list[Slot]],
    amounts: dict[Key, Amounts],
    meter: Meter,
) -> int:
    """Put equal pods where they like it best; returns how many found no room."""
    guard, request = market.guard, market.packed[shape]
    chunk = max(1, count // (3 * nodes))
    scored = taste.scored(amounts)
    while count and scored:
        score, key = max(scored)
        bucket, size = buckets[key], min(chunk, count)
        while (key[0] - size * request) & guard != guard:
            size >>= 1
        moved = bucket[-min(count // size, len(bucket)) :]
        del bucket[-len(moved) :]
        target = (key[0] - size * request, key[1])
        for slot in moved:
            slot.counts[shape] = slot.counts.get(shape, 0) + size
            slot.state = target[0]
        count -= len(moved) * size
        meter.spent += 2 + len(moved) + (len(scored) >> 3)
        if target in buckets:
            buckets[target] += moved
        else:
            buckets[target] = moved
            amounts[target] = guideline.read(target[0])
            scored += taste.scored({target: amounts[target]})
        if not bucket:
            del buckets[key], amounts[key]
            scored.remove((score, key))
    return count


def _largest_first(requests: Mapping[int, Amounts], total: Amounts) -> list[int]:
    """Shapes by falling largest share of ``total``, then falling sum of shares, then number."""
    scales = [1.0 / max(amount, 1.0) for amount in total]

    def key(shape: int) -> tuple[float, float, int]:
        shares = [amount * scale for amount, scale in zip(requests[shape], scales, strict=True)]
        return -max(shares), -sum(shares), shape

    return sorted(requests, key=key)
