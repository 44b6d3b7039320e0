"""Karpenter's rule, the anchor: nothing that is found otherwise may be dearer or place fewer pods.

Pods by falling cpu, then memory; each into the first space with room, else into the open node with the fewest pods
that some offer can still carry, else into a new one. In the end each node is the cheapest offer that carries it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush

from stockyard.scheduling.packing.price.market import Market
from stockyard.scheduling.packing.price.model import Counts, Meter, Vector


def greedy(market: Market, pods: Counts, meter: Meter) -> list[Counts]:
    """The nodes of the rule. Pods that no column holds are on none."""
    nodes: list[Counts] = []
    loads: list[list[int]] = []
    masks: list[int] = []
    sizes: list[int] = []
    for shape in by_cpu_and_memory(market, pods):
        request, able = market.requests[shape], market.holders[shape]
        if not able:
            continue
        heap = [(size, node) for node, size in enumerate(sizes)]
        heapify(heap)
        meter.spent += len(heap) >> 3
        for _ in range(pods[shape]):
            meter.spent += 2
            while heap:
                size, node = heappop(heap)
                load = [a + b for a, b in zip(loads[node], request, strict=True)]
                mask = masks[node] & able
                mask &= market.holding(load)
                meter.spent += 2
                if mask:
                    break
            else:
                node, size, load, mask = len(nodes), 0, list(request), able
                nodes.append({})
                loads.append(load)
                masks.append(mask)
                sizes.append(0)
            nodes[node][shape] = nodes[node].get(shape, 0) + 1
            loads[node], masks[node], sizes[node] = load, mask, size + 1
            heappush(heap, (size + 1, node))
    return nodes


def by_cpu_and_memory(market: Market, shapes: Iterable[int]) -> list[int]:
    """Shapes in the order of the rule: falling requests, the first resource before the second and so on."""
    return sorted(shapes, key=lambda number: ([-amount for amount in market.requests[number]], number))


def first_fit(market: Market, spaces: Sequence[Vector], usable: Sequence[int], pods: Counts) -> list[Counts]:
    """Pods that the rule puts into each space. Bit n of ``usable[s]`` says that shape s may be in space n."""
    states = [market.pack(room) | market.guard for room in spaces]
    filled: list[Counts] = [{} for _ in spaces]
    guard = market.guard
    for shape in by_cpu_and_memory(market, pods):
        count, request = pods[shape], market.packed[shape]
        for number in [n for n, state in enumerate(states) if (state - request) & guard == guard]:
            fitting = market.most(states[number], shape, count) if usable[shape] >> number & 1 else 0
            if fitting:
                filled[number][shape] = fitting
                states[number] -= fitting * request
                count -= fitting
                if not count:
                    break
    return filled
