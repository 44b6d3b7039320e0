"""The search for a cheap packing: a base that a liquid would buy too, a cover of what remains, rebuilding."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from stockyard.domain.values.frozen import dataclass
from stockyard.scheduling.packing.price.aligned import RARE_STYLES, STYLES, Guideline, Slot, Style, pack
from stockyard.scheduling.packing.price.cover import Covers, rows_of
from stockyard.scheduling.packing.price.greedy import greedy
from stockyard.scheduling.packing.price.market import Market
from stockyard.scheduling.packing.price.model import EVERY, Counts, Meter, joined
from stockyard.scheduling.packing.price.relaxation import Guide, Relaxation

TAIL = 6
"""About how many nodes are left to the search for covers."""
DEPTH = 8
LEVELS = 3
"""One of so many parts of the steps that remain goes to each number of nodes."""
WIDENINGS = 10
"""How often a cover of some depth is made wider, because pods found no room in it."""
LEAST = 0.001
"""By how much it grows at least, as a share of the pods."""
COVERS = 30
"""How many covers a search keeps."""
FAILURES, PARTS = 2, 2
"""After so many covers into which the pods did not fit, and so large a part of the steps for this number of nodes,
larger covers are looked for."""
VAIN = 30
"""After so many attempts at rebuilding in vain the search ends."""


@dataclass(frozen=True, slots=True)
class Node:
    """Pods and the column that carries them."""

    column: int
    counts: Counts


class Search:
    """Everything the steps of the search share."""

    def __init__(self, market: Market, guide: Guide, meter: Meter) -> None:
        self.market, self.guide, self.meter = market, guide, meter

    def common_values(self, shapes: Iterable[int]) -> list[float]:
        """Least worth of a unit of each resource to some shapes."""
        classes = sorted({self.market.classes[shape] for shape in shapes})
        return [min(column) for column in zip(*(self.guide.values[group] for group in classes), strict=True)]

    def worth(self, counts: Counts) -> float:
        """Worth of the requests of pods: a liquid would pay as much."""
        values, requests = self.guide.values, self.market.requests
        return sum(count * _dot(values[self.market.classes[shape]], requests[shape]) for shape, count in counts.items())

    def price(self, nodes: Iterable[Node]) -> int:
        """Price of nodes together."""
        return sum(self.market.prices[node.column] for node in nodes)

    def nodes(self, filled: Iterable[Counts]) -> list[Node]:
        """The cheapest column for each set of pods. Each has one."""
        return [Node(self.market.cheapest(counts), counts) for counts in filled if counts]

    def whole(self, pods: Counts) -> list[Node]:
        """A packing of all pods from nothing. Each has a column that holds it."""
        base, remaining = self._base(pods)
        budget = self.meter.remaining // 2 if base else self.meter.remaining * 3 // 4
        tail = self.tail(remaining, float("inf"), budget) if remaining else []
        return [*base, *(self.nodes(greedy(self.market, remaining, self.meter)) if tail is None else tail)]

    def _base(self, pods: Counts) -> tuple[list[Node], Counts]:
        """Nodes that a liquid would buy anyway, filled with their share of everything, and the pods that remain."""
        base: list[Node] = []
        guide = self.guide
        while True:
            total = sum(guide.amounts.values())
            columns = [
                column
                for column, amount in sorted(guide.amounts.items())
                for _ in range(int(amount) - 1 if total > TAIL else 0)
            ]
            if not columns:
                return base, pods
            filled, remaining = self._share(columns, guide.amounts, pods)
            nodes = self.nodes(filled)
            base, pods = [*base, *nodes], remaining
            if not pods or not nodes or len(guide.values) > 1:
                return base, pods
            relaxation = Relaxation(self.market.rooms, self.market.prices, [1] * len(self.market.rooms), 1)
            guide = relaxation.solve([self.market.load(pods)])
            self.meter.spent += 30 * guide.rounds

    def _share(self, columns: Sequence[int], amounts: dict[int, float], pods: Counts) -> tuple[list[Counts], Counts]:
        """Fill ``columns`` beside one node with the room of all other columns that a liquid would buy."""
        market, load = self.market, self.market.load(pods)
        room = [
            int(sum(amount * market.rooms[column][index] for column, amount in amounts.items()))
            - sum(market.rooms[column][index] for column in columns)
            for index in range(len(load))
        ]
        room = [min(amount, most) for amount, most in zip(room, load, strict=True)]
        slots = [*self._slots(columns, pods), Slot(market.pack(room) | market.guard, EVERY, {})]
        whole = [sum(amounts) for amounts in zip(room, *(market.rooms[column] for column in columns), strict=True)]
        guideline = Guideline(market, load, whole)
        remaining = pack(market, slots, pods, guideline, self.meter)
        for shape, count in slots.pop().counts.items():
            remaining[shape] = remaining.get(shape, 0) + count
        return [slot.counts for slot in slots], remaining

    def _slots(self, columns: Iterable[int], pods: Counts) -> list[Slot]:
        """An empty node for each column."""
        market, shapes = self.market, dict[int, int]()
        for column in columns:
            if market.hubs[column] not in shapes:
                shapes[market.hubs[column]] = market.admitted(column, pods)
        return [
            Slot(market.pack(market.rooms[column]) | market.guard, shapes[market.hubs[column]], {})
            for column in columns
        ]

    def tail(
        self, pods: Counts, ceiling: float, budget: int, depth: int = DEPTH, styles: Sequence[Style] = STYLES
    ) -> list[Node] | None:
        """A packing of few nodes cheaper than ``ceiling``; None when none was found."""
        best: list[Node] | None = None
        end = self.meter.spent + budget
        market = self.market
        rows = rows_of(market, pods, 4)
        load = rows[0][1]
        covers = Covers(
            market.prices, market.rooms, market.thresholds, self.common_values(pods), rows, self.meter, COVERS
        )
        spare, failed = 0.0, set[tuple[int, ...]]()
        for level in range(min(2, depth), depth + 1):
            level_end = self.meter.spent + (end - self.meter.spent) // min(depth + 1 - level, LEVELS)
            for _ in range(WIDENINGS if level > 2 else 1):
                covers.rows = ((rows[0][0], tuple(int(amount * (1 + spare)) for amount in load)), *rows[1:])
                covers.limit = self.meter.spent + (end - self.meter.spent) // 3
                short = 1.0
                fresh = [cover for cover in covers.search(level, ceiling) if cover[1] not in failed]
                enough = self.meter.spent + (level_end - self.meter.spent) // PARTS
                for number, (price, columns) in enumerate(fresh):
                    if price >= ceiling or self.meter.spent >= (level_end if number < FAILURES else enough):
                        break
                    failed.add(columns)
                    nodes, missing = self._packed(columns, pods, load, styles)
                    if nodes and self.price(nodes) < ceiling:
                        best, ceiling = nodes, self.price(nodes)
                    short = min(short, missing)
                    if not missing:
                        break
                if short in {0.0, 1.0} or self.meter.spent >= level_end:
                    break
                spare += max(short / 4, LEAST)
            spare /= 2
        return best

    def _packed(
        self, columns: Sequence[int], pods: Counts, load: Sequence[int], styles: Sequence[Style]
    ) -> tuple[list[Node], float]:
        """The pods in these columns, and the share that does not fit: it gets a larger node, or one of its own."""
        market = self.market
        room = [sum(amounts) for amounts in zip(*(market.rooms[column] for column in columns), strict=True)]
        share, remaining, slots = 2.0, pods, list[Slot]()
        for style in styles:
            tried = self._slots(columns, pods)
            unpacked = pack(market, tried, pods, Guideline(market, load, room, style), self.meter)
            short = max(part / max(amount, 1) for part, amount in zip(market.load(unpacked), load, strict=True))
            if short < share:
                share, remaining, slots = short, unpacked, tried
            if not remaining:
                break
        nodes = self.nodes(slot.counts for slot in slots)
        if not remaining:
            return nodes, 0.0
        best, index = market.cheapest(remaining), -1
        least = market.prices[best] if best >= 0 else float("inf")
        for number, node in enumerate(nodes):
            column = market.cheapest(joined(node.counts, remaining))
            if column >= 0 and market.prices[column] - market.prices[node.column] < least:
                best, index, least = column, number, market.prices[column] - market.prices[node.column]
        self.meter.spent += 10 * len(nodes)
        if best < 0:
            return [], share
        if index < 0:
            return [*nodes, Node(best, remaining)], share
        nodes[index] = Node(best, joined(nodes[index].counts, remaining))
        return nodes, share

    def rebuild(self, nodes: list[Node], seed: int = 1) -> list[Node]:
        """Look for a cheaper packing of the pods of a few wasteful nodes, again and again; of few at last of all."""
        chance = random.Random(seed)
        vain, tried = 0, set[tuple[int, ...]]()
        while vain < VAIN and self.meter.remaining > 0 and len(nodes) > 1:
            picked = self._picked(nodes, chance)
            if picked in tried:
                vain += 1
                continue
            tried.add(picked)
            ceiling = sum(self.market.prices[nodes[number].column] for number in picked)
            pods = joined(*(nodes[number].counts for number in picked))
            self.meter.spent += 20
            budget = min(self.meter.remaining, 4_000 + self.meter.limit // 20)
            better = self.tail(pods, ceiling, budget, len(picked) + 3)
            if better is None:
                vain += 1
                continue
            vain = 0
            tried.clear()
            nodes = [*(node for number, node in enumerate(nodes) if number not in picked), *better]
        if len(nodes) > TAIL or self.meter.remaining <= 0:
            return nodes
        pods = joined(*(node.counts for node in nodes))
        return self.tail(pods, self.price(nodes), self.meter.remaining, styles=RARE_STYLES) or nodes

    def _picked(self, nodes: Sequence[Node], chance: random.Random) -> tuple[int, ...]:
        """Some nodes whose price is furthest above the worth of their pods, by chance."""
        wastes = []
        for number, node in enumerate(nodes):
            waste = self.market.prices[node.column] - self.worth(node.counts)
            wastes.append((waste * (0.2 + chance.random()), number))
        wastes.sort(reverse=True)
        return tuple(sorted(number for _, number in wastes[: chance.choice((2, 3, 3, 4))]))


def _dot(values: Sequence[float], amounts: Sequence[int]) -> float:
    return sum([value * amount for value, amount in zip(values, amounts, strict=True)])
