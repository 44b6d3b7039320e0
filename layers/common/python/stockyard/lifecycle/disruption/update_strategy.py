"""Replacement of the drifted nodes of a pool: how many may come beyond those that it has to have, and how many of these
may be missing. Pure.

``add_first`` is the way without figures: what comes is there before anything leaves, as many at a time as the pool's
budgets let go. ``remove_first`` lets one node go, drained and deleted, before another is made. ``custom`` has figures
of its own: nodes, or a part of those that the pool has to have, of which surge is rounded up and unavailable down.
"""

from __future__ import annotations

from collections.abc import Sequence

from stockyard.domain.pools.budgets import DRIFTED, UNBOUNDED, Budget, NodeState, budgets_of
from stockyard.domain.pools.records import STATIC, NewPool, Pool
from stockyard.domain.records import NodeClaim
from stockyard.domain.values.frozen import dataclass
from stockyard.lifecycle.nodes.drift import is_drifted
from stockyard.lifecycle.pools.spread import living

ADD_FIRST, REMOVE_FIRST, CUSTOM = "add_first", "remove_first", "custom"


@dataclass(frozen=True, slots=True)
class Allowance:
    """Allowance of one replacement of nodes: ``surge`` nodes may be there besides, ``unavailable`` may be missing."""

    surge: int
    unavailable: int

    @property
    def together(self) -> int:
        """Number of nodes that may be replaced at a time."""
        return self.surge + self.unavailable


def allowance(pool: NewPool | Pool, nodes: int) -> Allowance | None:
    """Allowance of the pool's strategy where the pool has to have so many ``nodes``; None: it adds first, by its
    budgets."""
    strategy = pool.update_strategy
    kind = strategy.get("type", ADD_FIRST)
    if kind == ADD_FIRST:
        return None
    if kind == REMOVE_FIRST:
        return Allowance(0, 1)
    surge = _nodes(strategy.get("max_surge", 0), nodes, up=True)
    unavailable = _nodes(strategy.get("max_unavailable", 0), nodes, up=False)
    # Parts of few nodes may be none of both, and then nothing would ever be replaced.
    return Allowance(surge, unavailable) if surge or unavailable else Allowance(0, 1)


def _nodes(figure: int | str, nodes: int, *, up: bool) -> int:
    if isinstance(figure, int):
        return figure
    percent = int(figure.removesuffix("%"))
    return -(-percent * nodes // 100) if up else percent * nodes // 100


def size_of(pool: Pool, claims: Sequence[NodeClaim], until: str = "~") -> int:
    """Number of nodes that the pool has to have while some are replaced: what it is to have at least, or those that it
    has, of the ones that were made until then."""
    if pool.kind == STATIC:
        return pool.quantity
    own = sum(claim.pool == pool.name and living(claim) and claim.created_at < until for claim in claims)
    return max(pool.floor, own)


def replaceable_now(pool: Pool, claims: Sequence[NodeClaim], states: Sequence[NodeState]) -> int:
    """Number of further nodes of the pool that may be replaced at this moment; ``UNBOUNDED`` where only budgets count.

    What is on its way, in whichever direction, and what is not ready counts as being replaced already.
    """
    allowed = allowance(pool, size_of(pool, claims))
    if allowed is None:
        return UNBOUNDED
    coming = sum(claim.pool == pool.name and living(claim) and claim.phase == "Pending" for claim in claims)
    away = sum(state.managed and not state.terminated and (state.disrupting or not state.ready) for state in states)
    # A node that is not initialized is one that comes: its state says that it is not ready too.
    starting = sum(state.managed and not state.terminated and not state.initialized for state in states)
    return max(0, allowed.together - max(coming, starting) - max(0, away - starting))


def budgets_of_updates(pool: Pool) -> tuple[Budget, ...]:
    """The budgets that hold for drifted nodes. Beside a strategy with figures those that name no reason do not, unless
    they have a window: how many nodes go at a time the strategy says."""
    budgets = budgets_of(pool.disruption)
    if allowance(pool, 1) is None:
        return budgets
    return tuple(each for each in budgets if each.fault or DRIFTED in each.reasons or each.schedule is not None)


def most_new(pool: Pool, claims: Sequence[NodeClaim]) -> int:
    """Number of claims that the pool may make: what leaves to be replaced keeps its place until it is gone, unless
    there may be more nodes for a while. ``claims`` are all of the pool."""
    nodes = pool.quantity if pool.kind == STATIC else pool.floor
    allowed = allowance(pool, nodes)
    if allowed is None or pool.deleting:
        return UNBOUNDED
    there = sum(living(claim) or (claim.deleting and is_drifted(claim)) for claim in claims)
    return max(0, nodes + allowed.surge - there)
