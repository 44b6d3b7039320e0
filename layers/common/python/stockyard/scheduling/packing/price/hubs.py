"""Pods of several classes: place by place, the narrow ones first, the others into what is left of their nodes.

A hub is a set of columns that admit the same classes: a zone, a capacity type, an architecture. The relaxation says in
which hub a liquid would put most of each class. Nodes of the hubs are searched for one hub at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stockyard.scheduling.packing.price.aligned import Guideline, Slot, pack
from stockyard.scheduling.packing.price.market import Market
from stockyard.scheduling.packing.price.model import Counts, FreeProblem, Meter
from stockyard.scheduling.packing.price.relaxation import Guide, Relaxation
from stockyard.scheduling.packing.price.search import Search

LEAST_STEPS = 8_000
"""What a hub may cost at least, so that there is an answer."""


def by_hub(problem: FreeProblem, market: Market, guide: Guide, pods: Counts, meter: Meter) -> list[Counts] | None:
    """The pods of each node; None when a pod is too large for the hub of its class."""
    groups: dict[int, Counts] = {}
    for shape, count in pods.items():
        hub = guide.hubs[market.classes[shape]]
        groups.setdefault(hub, {})[shape] = count
    slots: list[Slot] = []
    order = sorted(groups, key=lambda hub: (min(market.holders[shape].bit_count() for shape in groups[hub]), hub))
    for number, hub in enumerate(order):
        remaining = groups[hub]
        if slots:
            room = [sum(amounts) for amounts in zip(*(market.unpack(slot.state) for slot in slots), strict=True)]
            remaining = pack(market, slots, remaining, Guideline(market, market.load(remaining), room), meter)
        if remaining:
            share = max(meter.remaining // (2 * (len(order) - number)), LEAST_STEPS)
            filled = _one_hub(problem, market, hub, remaining, Meter(share), meter)
            if filled is None:
                return None
            slots += _slots(market, filled, pods)
    return [slot.counts for slot in slots if slot.counts]


def _one_hub(
    problem: FreeProblem, market: Market, hub: int, pods: Counts, share: Meter, meter: Meter
) -> list[Counts] | None:
    """Pack pods into the columns of one hub, as one class."""
    numbers = sorted(pods)
    mask = sum(1 << market.offers[column] for column, index in enumerate(market.hubs) if index == hub)
    shapes = tuple(replace(problem.shapes[shape], offers=mask, count=pods[shape]) for shape in numbers)
    alone = Market(FreeProblem(shapes, problem.offers), ~mask & (1 << len(problem.offers)) - 1)
    if not all(alone.holders):
        return None
    guide = Relaxation(alone.rooms, alone.prices, [1] * len(alone.rooms), 1).solve([alone.load(alone.count)])
    nodes = Search(alone, guide, share).whole(alone.count)
    meter.spent += share.spent
    return [{numbers[shape]: count for shape, count in node.counts.items()} for node in nodes]


def _slots(market: Market, filled: Sequence[Counts], pods: Counts) -> list[Slot]:
    """The nodes as they are, for more pods to join."""
    slots = []
    for counts in filled:
        column = market.cheapest(counts)
        free = [a - b for a, b in zip(market.rooms[column], market.load(counts), strict=True)]
        slots.append(Slot(market.pack(free) | market.guard, market.admitted(column, pods), dict(counts)))
    return slots
