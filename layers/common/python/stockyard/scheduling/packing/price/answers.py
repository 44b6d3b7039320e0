"""Answers that a caller keeps: many of the problems that it has are alike, and so are those of its next look."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import groupby
from typing import Any

from stockyard.scheduling.packing.price.model import Answer, Certificate, FreeProblem
from stockyard.scheduling.packing.price.solve import lower_bound, solve

MOST = 256
"""How many are kept: a few kilobytes each, as nodes in a row with the same room are one entry of a key."""


class Answers:
    """Answers to problems and their lower bounds, each found once; of too many the ones asked for last are kept.

    What spaces are called is no part of a problem. One thread uses it at a time.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()

    def lower_bound(self, problem: FreeProblem) -> Certificate:
        """See ``solve.lower_bound``."""
        bound: Certificate = self._of((None, *_parts(problem)), lambda: lower_bound(problem))
        return bound

    def solve(self, problem: FreeProblem, steps: int) -> Answer:
        """See ``solve.solve``. A kept answer counts the steps that it took when it was found."""
        answer: Answer = self._of((steps, *_parts(problem)), lambda: solve(problem, steps))
        return answer

    def _of(self, key: Hashable, find: Callable[[], Any]) -> Any:
        there = self._kept.get(key)
        if there is None:
            there = self._kept[key] = find()
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return there


def _parts(problem: FreeProblem) -> tuple[Hashable, ...]:
    rooms = tuple((room, sum(1 for _ in row)) for room, row in groupby(space.room for space in problem.spaces))
    return problem.shapes, problem.offers, rooms, problem.preferences
