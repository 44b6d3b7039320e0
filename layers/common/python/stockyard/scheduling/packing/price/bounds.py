"""Lower bounds of the price of any packing, beside the linear bound: whole nodes whose loads are sums of whole pods."""

from __future__ import annotations

from collections.abc import Sequence

from stockyard.scheduling.packing.price.cover import Covers, rows_of
from stockyard.scheduling.packing.price.market import Market, Thresholds
from stockyard.scheduling.packing.price.model import Counts, Meter, Vector
from stockyard.scheduling.packing.price.relaxation import Relaxation

WIDEST = 1 << 21
"""The largest amount, in reduced units, up to which sums of requests are looked at."""
NESTED = 12
DEEPEST = 100
"""Covers of more nodes are not looked at, so that nothing is proven where there could be one."""
_SAFE = 1 - 1e-9


def reachable(market: Market, pods: Counts, rooms: Sequence[Vector]) -> list[Vector]:
    """Each room rounded down to the largest sums that the requests of some pods have, resource by resource."""
    rounded = [list(room) for room in rooms]
    for index in range(len(market.units)):
        most = min(max((room[index] for room in rooms), default=0), market.load(pods)[index])
        if most > WIDEST:
            continue
        sums, cut = 1, (1 << most + 1) - 1
        for shape, count in pods.items():
            request, uncounted, size = market.requests[shape][index], count, 1
            while request and uncounted:
                size = min(size, uncounted)
                sums |= sums << request * size & cut
                uncounted, size = uncounted - size, size * 2
        for room in rounded:
            room[index] = (sums & (1 << max(min(room[index], most), 0) + 1) - 1).bit_length() - 1
    return [tuple(room) for room in rounded]


def cover_bound(
    market: Market, pods: Counts, free: Sequence[int], price: int, meter: Meter, steps: int
) -> tuple[int, bool] | None:
    """The price of the cheapest cover by whole nodes, and whether it is ``price`` itself, which then is the least.

    ``free`` is the room that costs nothing. None when ``steps`` were not enough: then nothing is proven.
    """
    rooms = reachable(market, pods, market.rooms) if not any(free) else market.rooms
    rows = tuple(
        (mask, tuple(max(amount - gift, 0) for amount, gift in zip(missing, free, strict=True)))
        for mask, missing in rows_of(market, pods, NESTED)
    )
    if not any(rows[0][1]):
        return 0, not price
    guide = Relaxation(rooms, market.prices, [1] * len(rooms), 1).solve([rows[0][1]])
    values = [value * _SAFE for value in guide.values[0]]
    covers = Covers(market.prices, rooms, Thresholds(rooms), values, rows, meter, 1, meter.spent + steps)
    best = covers.search(min(sum(pods.values()), DEEPEST), float(price))
    if not covers.complete:
        return None
    return (best[0][0], False) if best else (price, True)
