"""Wishes for the nodes: a largest size, at least so many of them, and limits that leave pods without a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stockyard.domain.values.frozen import dataclass
from stockyard.scheduling.packing.price.model import Counts, FreeProblem, Offer, Preferences, joined, less


@dataclass(frozen=True, slots=True)
class Bought:
    """A node that is bought: its offer, and its pods."""

    offer: int
    counts: Counts


Build = Callable[[Counts, int], list[Bought]]
"""Packs pods without the offers of a mask. Pods that fit nowhere are on no node."""


def too_large(problem: FreeProblem) -> int:
    """The offers that are larger than wished, as a mask."""
    largest = problem.preferences.largest
    return sum(
        1 << number
        for number, offer in enumerate(problem.offers)
        if any(most is not None and amount > most for amount, most in zip(offer.room, largest, strict=False))
    )


Fill = Callable[[Bought, Counts], Counts]
"""Which of some pods find room beside those of a node."""


def within_counts(problem: FreeProblem, pods: Counts, barred: int, build: Build, fill: Fill) -> list[Bought]:
    """Pack so that no offer is bought more often than there are of it.

    Where one is, the nodes of it with the most pods stay and are filled up, and all others are packed anew without it.
    """
    fixed: list[Bought] = []
    remaining = dict(pods)
    while True:
        nodes = build(remaining, barred)
        by_offer: dict[int, list[Bought]] = {}
        for node in nodes:
            by_offer.setdefault(node.offer, []).append(node)
        exhausted, scarce = 0, list[Bought]()
        for number, bought in sorted(by_offer.items()):
            limit = problem.offers[number].limit
            if limit is not None and len(bought) > limit:
                exhausted |= 1 << number
                scarce += sorted(bought, key=lambda node: -sum(node.counts.values()))[:limit]
        if not exhausted:
            return [*fixed, *nodes]
        for node in scarce:
            remaining = less(remaining, node.counts)
        for node in scarce:
            extra = fill(node, remaining)
            remaining = less(remaining, extra)
            fixed.append(Bought(node.offer, joined(node.counts, extra)))
        barred |= exhausted


def split(nodes: Sequence[Bought], least: int, cheapest: Callable[[Counts], int]) -> list[Bought]:
    """At least ``least`` nodes, if there are so many pods: those with most pods become two of about equal pods.

    ``cheapest`` names the offer for some pods, -1 when there is none: then no more is split.
    """
    nodes = list(nodes)
    while nodes and len(nodes) < least:
        nodes.sort(key=lambda node: sum(node.counts.values()))
        largest = nodes.pop()
        if sum(largest.counts.values()) < 2:
            nodes.append(largest)
            break
        first: Counts = {}
        second: Counts = {}
        odd = 0
        for shape, count in sorted(largest.counts.items()):
            half = (count + odd) // 2
            odd ^= count & 1
            for counts, part in ((first, half), (second, count - half)):
                if part:
                    counts[shape] = part
        offers = [cheapest(first), cheapest(second)]
        if min(offers) < 0:
            nodes.append(largest)
            break
        nodes += [Bought(offer, counts) for offer, counts in zip(offers, (first, second), strict=True)]
    return nodes


def within_limits(preferences: Preferences, offers: Sequence[Offer], nodes: Sequence[Bought]) -> list[Bought]:
    """The nodes that may be bought: those with the most pods for their price, as long as every limit holds."""
    if not preferences.limited:
        return list(nodes)
    accepted: list[Bought] = []
    money, amounts = 0, [0] * len(preferences.amounts)
    order = sorted(
        range(len(nodes)),
        key=lambda n: (-sum(nodes[n].counts.values()) / (offers[nodes[n].offer].price or 1), n),
    )
    for number in order:
        offer = offers[nodes[number].offer]
        sums = [total + amount for total, amount in zip(amounts, offer.weight or offer.room, strict=False)]
        if (
            (preferences.nodes is None or len(accepted) < preferences.nodes)
            and (preferences.money is None or money + offer.price <= preferences.money)
            and all(most is None or amount <= most for amount, most in zip(sums, preferences.amounts, strict=True))
        ):
            accepted.append(nodes[number])
            money, amounts = money + offer.price, sums
    return accepted
