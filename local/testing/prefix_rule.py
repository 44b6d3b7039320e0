"""Karpenter's choice of the nodes to consolidate, to compare with: a prefix of an order, found by halving.

Candidates go by their price for each unit of disruption, the largest first, at most 100 of them. The longest prefix is
looked for whose pods have room elsewhere and on at most one new node that is cheaper than all that go.
"""

from __future__ import annotations

from stockyard.domain.pools.budgets import UNDERUTILIZED
from stockyard.scheduling.consolidation.model import Decision, Fleet, Replacement, RunningNode
from stockyard.scheduling.consolidation.places import pods_of
from stockyard.scheduling.consolidation.search import candidates_of
from stockyard.scheduling.packing.model import Problem, Settings
from stockyard.scheduling.packing.plan import Plan, pack

MOST = 100
_FEWEST = 2


def prefix_decision(fleet: Fleet) -> Decision | None:
    """The decision of the rule; None when no prefix, and no node by itself, saves anything."""
    order = sorted(candidates_of(fleet), key=lambda node: (-node.price / node.cost, node.name))
    low, high = _FEWEST, min(MOST, len(order))
    best: Decision | None = None
    while low <= high:
        middle = (low + high) // 2
        decision = _command(fleet, order[:middle])
        if decision is not None:
            best, low = decision, middle + 1
        else:
            high = middle - 1
    if best is not None:
        return best
    return next((decision for node in order if (decision := _command(fleet, [node])) is not None), None)


def _command(fleet: Fleet, nodes: list[RunningNode]) -> Decision | None:
    plan = _plan(fleet, nodes)
    if plan.left_out or len(plan.claims) > 1 or plan.price >= sum(node.price for node in nodes):
        return None
    replacements = tuple(Replacement(claim, claim.price) for claim in plan.claims)
    return Decision(UNDERUTILIZED, tuple(nodes), replacements, plan.placements)


def _plan(fleet: Fleet, nodes: list[RunningNode]) -> Plan:
    """The simulation of the rule: pods join what is there, or a planned node, and nothing is looked for beyond."""
    names = {node.name for node in nodes}
    groups = pods_of(nodes)
    there = tuple(running.node for running in fleet.nodes if running.name not in names)
    settings = Settings(preferences=False, split=False)
    return pack(Problem(groups, fleet.pools, there, fleet.daemons, settings, fleet.places))
