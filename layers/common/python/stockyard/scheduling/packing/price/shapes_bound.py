"""A bound that knows shapes: no node holds pods worth more than its price, however it is filled.

Each shape has a price. The first two resources are looked at. A vector of their values at which each
shape is worth at least its price is a ceiling: no load of a node is worth more than its room at these values. The least
ceilings are the corners of one polygon, common to all offers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from stockyard.scheduling.packing.price.linear import Column, Simplex
from stockyard.scheduling.packing.price.market import Market
from stockyard.scheduling.packing.price.model import Counts, FreeProblem, Meter

MOST_SHAPES = 40
ROUNDS = 300
_SCALE = 1 << 40

Corner = tuple[float, float, tuple[int, ...]]
"""The values of both resources, and the shapes (places of a list) that are worth no more there than their price."""


def shapes_bound(problem: FreeProblem, market: Market, pods: Counts, barred: int, meter: Meter) -> int:
    """Lower bound of the cost of the pods, in nano-dollars; 0 where it cannot be told: classes, spaces or too many
    shapes.

    ``barred`` are offers that may not be used, as a mask. Every other offer is compared, worthwhile or not.
    """
    shapes = sorted(pods)
    if len(set(market.classes)) > 1 or problem.spaces or len(shapes) > MOST_SHAPES or len(market.units) < 2:
        return 0
    sizes = [market.requests[shape][:2] for shape in shapes]
    if any(min(size) < 1 for size in sizes):
        return 0
    rooms = [room[:2] for room in market.rooms]
    start = []
    for row, (a, b) in enumerate(sizes):
        best = max(range(len(rooms)), key=lambda n: min(rooms[n][0] / a, rooms[n][1] / b) / (market.prices[n] or 1e-9))
        start.append(Column(float(market.prices[best]), ((row, min(rooms[best][0] / a, rooms[best][1] / b)),)))
    simplex = Simplex([float(pods[shape]) for shape in shapes], start)

    def best_columns(values: Sequence[float]) -> list[Column]:
        meter.spent += len(rooms) + len(sizes)
        return _columns(values, sizes, rooms, market.prices)

    simplex.run(best_columns, ROUNDS)
    prices = [max(int(value * _SCALE), 0) for value in simplex.values]
    offers = [offer for number, offer in enumerate(problem.offers) if not barred >> number & 1]
    every = [market.reduce(offer.room)[:2] for offer in offers]
    return _certified(prices, sizes, every, [offer.price for offer in offers], [pods[shape] for shape in shapes])


def _columns(
    values: Sequence[float], sizes: Sequence[Sequence[int]], rooms: Sequence[Sequence[int]], prices: Sequence[int]
) -> list[Column]:
    """The column whose best load is worth most for its price."""
    corners = corners_of(values, sizes)
    best, ratio, index = -1, 0.0, 0
    for column, (a, b) in enumerate(rooms):
        worth, corner = min((u * a + v * b, number) for number, (u, v, _) in enumerate(corners))
        if worth > ratio * (prices[column] or 1e-9):
            best, ratio, index = column, worth / (prices[column] or 1e-9), corner
    if best < 0:
        return []
    return [Column(float(prices[best]), _load(corners[index], sizes, rooms[best]))]


def _load(corner: Corner, sizes: Sequence[Sequence[int]], room: Sequence[int]) -> tuple[tuple[int, float], ...]:
    """Numbers of pods of a corner's shapes that fill a room."""
    first, *more = corner[2]
    (a, b), (c, d) = sizes[first], sizes[more[0]] if more else (0, 0)
    determinant = a * d - b * c
    if determinant:
        x, y = (room[0] * d - room[1] * c) / determinant, (room[1] * a - room[0] * b) / determinant
        if x > 0 and y > 0:
            return ((first, x), (more[0], y))
    return ((first, min(room[0] / a, room[1] / b)),)


def corners_of(values: Sequence[float], sizes: Sequence[Sequence[int]]) -> list[Corner]:
    """The corners of the polygon above the line of each shape, from no value of the first resource on."""
    lines = sorted(
        ((-a / b, max(value, 0.0) / b, row) for row, (value, (a, b)) in enumerate(zip(values, sizes, strict=True))),
        key=lambda line: (line[0], line[1]),
    )
    hull: list[tuple[float, float, int]] = []
    for line in lines:
        if hull and hull[-1][0] == line[0]:
            hull.pop()
        while len(hull) > 1 and _above(hull[-2], hull[-1], line):
            hull.pop()
        hull.append(line)
    corners: list[Corner] = []
    top = max(range(len(hull)), key=lambda number: hull[number][1])
    corners.append((0.0, hull[top][1], (hull[top][2],)))
    for left_line, right_line in zip(hull[top:], hull[top + 1 :], strict=False):
        u = (left_line[1] - right_line[1]) / (right_line[0] - left_line[0])
        v = left_line[0] * u + left_line[1]
        if v <= 0:
            break
        corners.append((u, v, (left_line[2], right_line[2])))
    u, row = max((-line[1] / line[0], line[2]) for line in hull)
    corners.append((u, 0.0, (row,)))
    return corners


def _above(low: tuple[float, float, int], middle: tuple[float, float, int], line: tuple[float, float, int]) -> bool:
    """Whether the middle line is nowhere the highest of the three; slopes rise."""
    return (line[1] - low[1]) * (middle[0] - low[0]) >= (middle[1] - low[1]) * (line[0] - low[0])


def _certified(
    prices: Sequence[int],
    sizes: Sequence[Sequence[int]],
    rooms: Sequence[Sequence[int]],
    costs: Sequence[int],
    counts: Sequence[int],
) -> int:
    """The bound that follows, by whole numbers, whatever ``prices`` are: corners are made ceilings first."""
    ceilings = []
    for u, v, _ in corners_of([price / _SCALE for price in prices], sizes):
        whole = (int(u * _SCALE), int(v * _SCALE))
        worths = [whole[0] * a + whole[1] * b for a, b in sizes]
        if all(worths):
            factor = max(Fraction(price, worth) for price, worth in zip(prices, worths, strict=True))
            ceilings.append((factor * whole[0], factor * whole[1]))
    worst = Fraction(0)
    for (a, b), cost in zip(rooms, costs, strict=True):
        if a < 0 or b < 0:
            continue
        worth = min((u * a + v * b for u, v in ceilings), default=Fraction(0))
        if not cost and worth:
            return 0
        if cost:
            worst = max(worst, worth / cost)
    if not worst:
        return 0
    return -(-sum(count * price for count, price in zip(counts, prices, strict=True)) // worst)
