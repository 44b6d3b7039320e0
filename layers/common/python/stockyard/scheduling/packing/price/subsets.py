"""The cheapest packing of a few pods, exactly: each way to split them into nodes, by the subsets that are left."""

from __future__ import annotations

from stockyard.scheduling.packing.price.market import Market
from stockyard.scheduling.packing.price.model import Counts, Meter

MOST_PODS = 10


def cheapest_split(market: Market, pods: Counts, meter: Meter) -> list[Counts] | None:
    """The pods of each node of a cheapest packing; None when a pod fits nowhere.

    Work grows as 3 to the number of pods; equal pods are taken in order, which saves most of it.
    """
    shapes = [shape for shape, count in sorted(pods.items()) for _ in range(count)]
    every = (1 << len(shapes)) - 1
    twins = [0 if not n or shapes[n - 1] != shapes[n] else 1 << n - 1 for n in range(len(shapes))]
    node_price: dict[int, int | None] = {}
    best: dict[int, tuple[int, int]] = {0: (0, 0)}

    def price(part: int) -> int | None:
        if part not in node_price:
            column = market.cheapest(_counts(shapes, part))
            node_price[part] = None if column < 0 else market.prices[column]
            meter.spent += 4
        return node_price[part]

    def solve(remaining: int) -> tuple[int, int] | None:
        """Price of the remaining pods, and the node that has the first one of them."""
        if remaining in best:
            return best[remaining]
        first = remaining & -remaining
        fellows = remaining ^ first
        part, least = fellows, None
        while True:
            meter.spent += 1
            node = part | first
            if _in_order(node, remaining, twins):
                own = price(node)
                if own is not None and (least is None or own < least[0]):
                    after = solve(remaining ^ node)
                    if after is not None and (least is None or own + after[0] < least[0]):
                        least = (own + after[0], node)
            if not part:
                break
            part = part - 1 & fellows
        if least is not None:
            best[remaining] = least
        return least

    if solve(every) is None:
        return None
    nodes, remaining = [], every
    while remaining:
        node = best[remaining][1]
        nodes.append(_counts(shapes, node))
        remaining ^= node
    return nodes


def _counts(shapes: list[int], part: int) -> Counts:
    counts: Counts = {}
    for number, shape in enumerate(shapes):
        if part >> number & 1:
            counts[shape] = counts.get(shape, 0) + 1
    return counts


def _in_order(node: int, remaining: int, twins: list[int]) -> bool:
    """Whether of equal pods those that remain first are in the node: fellows are the same packing once more."""
    return all(
        not (node >> number & 1) or not twin & remaining or twin & node for number, twin in enumerate(twins) if twin
    )
