"""Nodes that are to be replaced whatever they cost: where their pods go, one node at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stockyard.scheduling.consolidation.arrivals import Arrivals
from stockyard.scheduling.consolidation.model import Decision, Fleet, Replacement, RunningNode, Settings
from stockyard.scheduling.consolidation.places import is_easy
from stockyard.scheduling.consolidation.search import Search
from stockyard.scheduling.packing.plan import Plan


class Replacements:
    """Plans the replacement of single nodes of a fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._arrivals: list[Arrivals] = []

    def of(self, node: RunningNode, reason: str) -> Decision | None:
        """Decision by which the node can go; None while its pods have no place that they will find.

        Its pods go onto the room of other nodes, and onto new ones where that does not do. Where the cluster's
        scheduler could spread them so that one is left over, new nodes are made for all of them.
        """
        tight = None
        for plan in self._plans(node):
            replacements = tuple(Replacement(claim, claim.rows[-1].price) for claim in plan.claims)
            decision = Decision(reason, (node,), replacements, plan.placements)
            if not is_easy(self._fleet, decision):
                continue
            if self._fits([node], plan):
                return decision
            tight = tight or decision
        return tight

    def _plans(self, node: RunningNode) -> Iterator[Plan]:
        plan = Search(self._fleet, Settings()).trial([node]).plan
        if plan is not None:
            yield plan
        # As if nothing else were there that has room for pods.
        alone = Search(replace(self._fleet, nodes=(node,)), Settings()).trial([node]).plan
        if alone is not None and alone.claims:
            yield alone

    def _fits(self, nodes: Sequence[RunningNode], plan: Plan) -> bool:
        if not self._arrivals:
            self._arrivals.append(Arrivals(self._fleet))
        return self._arrivals[0].fit(nodes, plan)
