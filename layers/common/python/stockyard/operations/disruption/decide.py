"""What is to be done next in a cluster: Karpenter's order of reasons, the first that yields a decision."""

from __future__ import annotations

from collections.abc import Sequence

from stockyard.domain.budgets import DRIFTED
from stockyard.domain.pool_records import STATIC
from stockyard.operations.disruption.fleet import View
from stockyard.scheduling.consolidation.model import Decision, Replacement, RunningNode, Settings
from stockyard.scheduling.consolidation.search import Search, consolidate, empty_nodes


def decide(view: View, settings: Settings | None = None) -> Decision | None:
    """Empty nodes go first, then those that drifted, then those that cost too much; None when none may."""
    return empty_nodes(view.fleet) or _drifted(view) or consolidate(view.fleet, settings)


def _drifted(view: View) -> Decision | None:
    """The first nodes that drifted and whose pods have a place without them. Of a static pool as many as its budget
    lets go: their replacements are the pool's to make."""
    search = Search(view.fleet, Settings())
    for node in view.drifted:
        allowed = view.allowed(node.pool, DRIFTED)
        if allowed < 1:
            continue
        if view.pools[node.pool].kind == STATIC:
            return Decision(DRIFTED, _of_pool(view.drifted, node.pool)[:allowed])
        plan = search.trial([node]).plan
        if plan is not None:
            replacements = tuple(Replacement(claim, claim.rows[-1].price) for claim in plan.claims)
            return Decision(DRIFTED, (node,), replacements, plan.placements)
    return None


def _of_pool(nodes: Sequence[RunningNode], pool: str) -> tuple[RunningNode, ...]:
    return tuple(node for node in nodes if node.pool == pool)
