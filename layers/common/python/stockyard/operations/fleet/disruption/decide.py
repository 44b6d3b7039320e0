"""Next decision in a cluster: Karpenter's order of reasons, the first that yields a decision."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from stockyard.domain.pools.budgets import DRIFTED, EXPIRED
from stockyard.domain.pools.records import STATIC, Pool
from stockyard.lifecycle.disruption.update_strategy import allowance, size_of
from stockyard.lifecycle.nodes.interruption import INTERRUPTED
from stockyard.lifecycle.pools.pool import living, wanted_nodes
from stockyard.lifecycle.pools.spread import fullest_first
from stockyard.operations.fleet.disruption.fleet import View
from stockyard.scheduling.consolidation.forced import Replacements
from stockyard.scheduling.consolidation.model import Decision, Fleet, RunningNode, Settings
from stockyard.scheduling.consolidation.places import homeless_pods
from stockyard.scheduling.consolidation.search import consolidate, empty_nodes

HOLD_REASON = "its last replacement did not come"
"""Why a node stays that leaves for its price as soon as its hold is over."""
MOST_OF_STATIC = 10
"""Nodes of a static pool that one decision replaces: all of their replacements are there for a while."""


def decide(view: View, settings: Settings | None = None, *, for_price: bool = True) -> Decision | None:
    """Decide the order: interruptible nodes first, then empty ones, expired or drifted ones, and those that cost too
    much; None when none may. Without ``for_price`` nodes that cost too much stay."""
    endangered = interrupted(view)
    return (
        (Decision(INTERRUPTED, endangered, by_pools=True) if endangered else None)
        or empty_nodes(view.fleet, view.rolled)
        or _replaced(view, EXPIRED)
        or _replaced(view, DRIFTED)
        or (consolidate(view.fleet, settings) if for_price else None)
    )


def holding(fleet: Fleet, held_names: Set[str]) -> Fleet:
    """The fleet where the nodes of these names do not leave for their price: they have room, and may go once empty."""
    if not held_names:
        return fleet
    nodes = (
        replace(node, blocker=node.blocker or HOLD_REASON) if node.name in held_names and not node.empty else node
        for node in fleet.nodes
    )
    return replace(fleet, nodes=tuple(nodes))


def without_types(fleet: Fleet, names: Set[str]) -> Fleet:
    """The fleet whose pools make no node of these types."""
    if not names:
        return fleet
    pools = (
        replace(pool, node_types=tuple(each for each in pool.node_types if each.name not in names))
        for pool in fleet.pools
    )
    return replace(fleet, pools=tuple(pools))


def interrupted(view: View, leaving: Set[str] = frozenset()) -> tuple[RunningNode, ...]:
    """Interruptible nodes with room for their pods elsewhere, on nodes outside ``leaving``, a set of ids of claims.
    What comes in their place is made by the pools, for which they count no more."""
    staying = tuple(node for node in view.fleet.nodes if view.claims[node.name].id not in leaving)
    fleet = replace(view.fleet, nodes=staying)
    nodes = view.replaceable.get(INTERRUPTED, ())
    for going in (tuple(nodes), *((node,) for node in nodes)):
        if going and not homeless_pods(fleet, going):
            return going
    return ()


def _replaced(view: View, reason: str) -> Decision | None:
    """The first of these nodes whose pods have a place without it. Of a static pool as many as its budget lets go, and
    as its limits let come before: their replacements are the pool's to make."""
    replacements = Replacements(view.fleet)
    nodes = view.replaceable.get(reason, ())
    for node in nodes:
        allowed = view.allowed(node.pool, reason)
        if allowed < 1:
            continue
        pool = view.pools[node.pool]
        together = _together(view, pool, reason)
        if pool.kind == STATIC or together:
            most = min(allowed, MOST_OF_STATIC, view.most_more(pool), together or MOST_OF_STATIC)
            if most > 0:
                return Decision(reason, _of_pool(view, nodes, pool)[:most], by_pools=True)
            continue
        decision = replacements.of(node, reason)
        if decision is not None:
            return decision
    return None


def _together(view: View, pool: Pool, reason: str) -> int:
    """Number of nodes that the pool, by its strategy, replaces and makes others for; 0: what comes is planned.

    Of a dynamic pool that has more than its floor only pods ask for nodes: there what is missing for a while may go.
    """
    claims = tuple(view.claims.values())
    size = size_of(pool, claims)
    allowed = allowance(pool, size) if reason == DRIFTED else None
    if allowed is None:
        return 0
    return allowed.together if size <= wanted_nodes(pool) else allowed.unavailable


def _of_pool(view: View, nodes: Sequence[RunningNode], pool: Pool) -> tuple[RunningNode, ...]:
    """The pool's nodes of these, in an order in which its zones stay even."""
    own = {view.claims[node.name].id: node for node in nodes if node.pool == pool.name}
    listed = [view.claims[node.name] for node in own.values()]
    present = [claim for claim in view.claims.values() if claim.pool == pool.name]
    return tuple(own[claim.id] for claim in fullest_first(pool.zones, listed, living(present)))
