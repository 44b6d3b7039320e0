"""Ways to pack a problem: Karpenter's rule as the anchor, and what is found by price, under the same wishes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from stockyard.scheduling.packing.price.aligned import Guideline, Slot, pack
from stockyard.scheduling.packing.price.greedy import first_fit, greedy
from stockyard.scheduling.packing.price.hubs import by_hub
from stockyard.scheduling.packing.price.market import Market
from stockyard.scheduling.packing.price.model import EVERY, Counts, FreeProblem, Meter, Vector, joined, less
from stockyard.scheduling.packing.price.preferences import Bought, split, too_large, within_counts, within_limits
from stockyard.scheduling.packing.price.relaxation import Guide, Relaxation
from stockyard.scheduling.packing.price.search import Search
from stockyard.scheduling.packing.price.subsets import MOST_PODS, cheapest_split
from stockyard.scheduling.table import mask_of


class Plan:
    """One way to pack: what is in the spaces, and the nodes that are bought."""

    __slots__ = ("nodes", "placed", "price", "spaces")

    def __init__(self, problem: FreeProblem, spaces: Sequence[Counts], nodes: Sequence[Bought]) -> None:
        self.spaces, self.nodes = list(spaces), list(nodes)
        self.price = sum(problem.offers[node.offer].price for node in nodes)
        self.placed = joined(*spaces, *(node.counts for node in nodes))


class Packer:
    """Everything that the plans of one problem share."""

    def __init__(self, problem: FreeProblem, meter: Meter) -> None:
        self.problem, self.meter = problem, meter
        self.barred = too_large(problem)
        self._markets: dict[int, Market] = {}
        self._guides: dict[int, Guide] = {}

    def market(self, barred: int) -> Market:
        """The market without some offers."""
        if barred not in self._markets:
            self._markets[barred] = Market(self.problem, barred)
            self.meter.spent += 5 * len(self.problem.offers)
        return self._markets[barred]

    def anchor(self, pods: Counts) -> Plan:
        """Karpenter's rule: spaces first, whatever they are good for, then nodes."""
        rooms = [space.room for space in self.problem.spaces]
        market = self.market(self.barred)
        usable = [shape.spaces for shape in self.problem.shapes]
        filled = first_fit(market, [market.reduce(room) for room in rooms], usable, pods)
        nodes = within_counts(self.problem, less(pods, joined(*filled)), self.barred, self._rule, self._filling)
        return self._plan(filled, nodes, self.barred)

    def plans(self, pods: Counts) -> list[Plan]:
        """Plans that are found by price: as they come, then with smaller or larger nodes where they are preferred."""
        filled = self._fill(pods)
        remaining = less(pods, joined(*filled))
        nodes = within_counts(self.problem, remaining, self.barred, self._by_price, self._filling)
        plans = [self._plan(filled, nodes, self.barred)]
        preferences, total = self.problem.preferences, sum(self.problem.offers[node.offer].price for node in nodes)
        masks: list[int] = []
        if preferences.least_nodes > len(nodes):
            masks += [self._offers(total * share / preferences.least_nodes, math.inf) for share in (1.0, 1.25)]
        if preferences.nodes and preferences.nodes < len(nodes):
            masks += [self._offers(-1, total * share / preferences.nodes) for share in (0.3, 0.6, 0.9)]
        for mask in masks:
            nodes = within_counts(self.problem, remaining, self.barred | mask, self._by_price, self._filling)
            plans.append(self._plan(filled, nodes, self.barred))
        return plans

    def _plan(self, filled: Sequence[Counts], nodes: Sequence[Bought], barred: int) -> Plan:
        preferences, few = self.problem.preferences, barred
        for number, offer in enumerate(self.problem.offers):
            few |= (offer.limit is not None) << number

        def cheapest(counts: Counts) -> int:
            market = self.market(few)
            column = market.cheapest(counts)
            return market.offers[column] if column >= 0 else -1

        nodes = split(nodes, preferences.least_nodes, cheapest)
        return Plan(self.problem, filled, within_limits(preferences, self.problem.offers, nodes))

    def _offers(self, above: float, below: float) -> int:
        """The offers with a price between two, as a mask."""
        return sum(1 << number for number, offer in enumerate(self.problem.offers) if above < offer.price < below)

    def _rule(self, pods: Counts, barred: int) -> list[Bought]:
        market = self.market(barred)
        nodes = greedy(market, pods, self.meter)
        return [Bought(market.offers[market.cheapest(counts)], counts) for counts in nodes]

    def _filling(self, node: Bought, pods: Counts) -> Counts:
        """Further pods for which the node has room, in the order of the rule."""
        market, offer = self.market(self.barred), self.problem.offers[node.offer]
        room = [a - b for a, b in zip(market.reduce(offer.room), market.load(node.counts), strict=True)]
        usable = [shape.offers >> node.offer & 1 for shape in self.problem.shapes]
        return first_fit(market, [tuple(room)], usable, pods)[0]

    def _by_price(self, pods: Counts, barred: int) -> list[Bought]:
        """The cheapest nodes that are found for the pods that any offer can hold."""
        market = self.market(barred)
        pods = {shape: count for shape, count in pods.items() if market.holders[shape]}
        if not pods:
            return []
        if sum(pods.values()) <= MOST_PODS:
            filled = cheapest_split(market, pods, self.meter) or []
            return [Bought(market.offers[market.cheapest(counts)], counts) for counts in filled]
        guide = self.guide(market, pods)
        search = Search(market, guide, self.meter)
        if len({market.classes[shape] for shape in pods}) > 1:
            filled_hubs = by_hub(self.problem, market, guide, pods, self.meter)
            if filled_hubs is None:
                return self._rule(pods, barred)
            nodes = search.nodes(filled_hubs)
        else:
            nodes = search.whole(pods)
        return [Bought(market.offers[node.column], node.counts) for node in search.rebuild(nodes)]

    def guide(self, market: Market, pods: Counts) -> Guide:
        """Guide of what a liquid would buy for some pods, in the market's reduced units."""
        relaxation = Relaxation(market.rooms, market.prices, market.admits, max(market.classes) + 1)
        guide = relaxation.solve(by_class(market, pods))
        self.meter.spent += guide.rounds * (20 + len(market.prices) // 4)
        return guide

    def _fill(self, pods: Counts) -> list[Counts]:
        """Pods into the spaces: first those that nothing else holds, then a mix like that of the rest."""
        market, spaces = self.market(self.barred), self.problem.spaces
        if not spaces:
            return []
        shapes = self._entering(pods)
        rooms = [market.reduce(space.room) for space in spaces]
        slots = [Slot(market.pack(room) | market.guard, mask, {}) for room, mask in zip(rooms, shapes, strict=True)]
        bound = {shape: count for shape, count in pods.items() if not market.holders[shape]}
        self._pack(market, slots, bound)
        free_pods = less(pods, bound)
        load = market.load(free_pods)
        free = _sum(market.unpack(slot.state) for slot in slots)
        scarce = max((amount / (room or 1) for amount, room in zip(load, free, strict=True)), default=0.0)
        if scarce > 1:
            beyond = [max(amount - room, int(room * (scarce - 1))) for amount, room in zip(load, free, strict=True)]
            room = [min(amount, most) for amount, most in zip(beyond, load, strict=True)]
            slots.append(Slot(market.pack(room) | market.guard, EVERY, {}))
        self._pack(market, slots, free_pods)
        return [slot.counts for slot in slots[: len(spaces)]]

    def _entering(self, pods: Counts) -> list[int]:
        """For each space the shapes that may be in it, as a mask."""
        by_mask: dict[int, list[int]] = {}
        for number in pods:
            by_mask.setdefault(self.problem.shapes[number].spaces, []).append(number)
        width = max(pods, default=0) + 1
        masks = {mask: mask_of(numbers, width) for mask, numbers in by_mask.items()}
        return [
            sum(shapes for mask, shapes in masks.items() if mask >> index & 1)
            for index in range(len(self.problem.spaces))
        ]

    def _pack(self, market: Market, slots: Sequence[Slot], pods: Counts) -> None:
        if pods:
            room = _sum(market.unpack(slot.state) for slot in slots)
            pack(market, slots, pods, Guideline(market, market.load(pods), room), self.meter)


def _sum(vectors: Iterable[Sequence[int]]) -> list[int]:
    return [sum(amounts) for amounts in zip(*vectors, strict=True)]


def by_class(market: Market, pods: Counts) -> list[Vector]:
    """Sum of the requests of each class's pods, in reduced units."""
    parts: list[Counts] = [{} for _ in range(max(market.classes) + 1)]
    for shape, count in pods.items():
        parts[market.classes[shape]][shape] = count
    return [tuple(market.load(part)) for part in parts]
