"""Classes by size: pods that no small node holds are kept apart from those that it does.

The relaxation takes the pods of a class as a liquid, which fills a node of any size. Where very small nodes are the
cheapest for what they hold, it would buy nothing else, although most pods fit into none of them. So shapes are put into
classes by which offers hold a pod of theirs, and an offer may carry a class only if it holds some shape of it. No
packing is lost by that, so bounds hold for the problem itself, and are larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from stockyard.scheduling.packing.price.market import Thresholds
from stockyard.scheduling.packing.price.model import FreeProblem

MOST_CLASSES = 4
"""Classes of the problem itself: with more of them, such as zones, there would be too many."""


def by_fit(problem: FreeProblem, classes: int) -> FreeProblem | None:
    """The problem with up to ``classes`` classes by size for each of its own; None where that changes nothing.

    Shapes are parted where the number of offers that hold them falls the most.
    """
    thresholds = Thresholds([offer.room for offer in problem.offers])
    fits = [shape.offers & thresholds.holding(shape.requests) for shape in problem.shapes]
    own: dict[int, list[int]] = {}
    for number, shape in enumerate(problem.shapes):
        if fits[number]:  # Others are in spaces, or stay without a node.
            own.setdefault(shape.offers, []).append(number)
    parts = [part for numbers in own.values() for part in _parts(numbers, fits, classes)]
    if len(own) > MOST_CLASSES or len(parts) == len(own):
        return None
    shapes = list(problem.shapes)
    for part in parts:
        usable = 0
        for number in part:
            usable |= fits[number]
        for number in part:
            shapes[number] = replace(shapes[number], offers=usable)
    return replace(problem, shapes=tuple(shapes))


def _parts(numbers: Sequence[int], fits: Sequence[int], most: int) -> list[list[int]]:
    ordered = sorted(numbers, key=lambda number: (-fits[number].bit_count(), number))
    falls = [fits[a].bit_count() - fits[b].bit_count() for a, b in pairwise(ordered)]
    steepest = sorted((index for index, fall in enumerate(falls) if fall), key=lambda index: (-falls[index], index))
    cuts = [0, *sorted(index + 1 for index in steepest[: most - 1]), len(ordered)]
    return [ordered[begin:end] for begin, end in pairwise(cuts)]
