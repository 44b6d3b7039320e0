"""A pool of which no node can be made as things are, or whose claims wait: how its record says so, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stockyard.domain.pools.records import Pool
from stockyard.domain.records import NodeClaim
from stockyard.domain.values.conditions import Condition, with_condition
from stockyard.lifecycle.nodes.node_phases import HINDERED
from stockyard.lifecycle.pools.pool import LOOK_AGAIN_SECONDS, READY, SCALING, later_than, looked_at_within

NO_NODE_TYPES = "NoNodeTypes"
"""The reason of the condition ``Ready`` of a pool that can have no node."""


def shows_types(pool: Pool, claims: Sequence[NodeClaim]) -> bool:
    """Whether the pool's claims show that it can have nodes: one that it would make now is placed, or it has one."""
    return any(
        claim.phase == "Available" or (claim.placement is not None and claim.pool_generation == pool.generation)
        for claim in claims
    )


def why_claims_wait(claims: Sequence[NodeClaim]) -> str | None:
    """The name of the first claim that waits for a node type, or whose launch is hindered, and the reason; None where
    no claim has one."""
    waiting = (
        claim
        for claim in claims
        if (claim.placement is None or claim.reason == HINDERED) and not claim.deleting and claim.message
    )
    return next((f"{claim.name} waits: {claim.message}" for claim in waiting), None)


def with_reason(pool: Pool, decided: Pool, claims: Sequence[NodeClaim], now: str) -> Pool:
    """The pool that lacks nodes and says why its claims wait; see ``without_types``."""
    why = why_claims_wait(claims)
    current = next((condition for condition in decided.conditions if condition.type == READY), None)
    if not why or current is None or current.reason != SCALING:
        return decided
    condition = Condition(READY, "False", SCALING, f"{current.message} {why}", now)
    return replace(decided, conditions=with_condition(pool.conditions, condition))


def without_types(pool: Pool, decided: Pool, message: str, now: str) -> Pool:
    """The pool that says why it can have no node. It is looked at again soon: nothing tells of a type that comes.

    ``decided`` is the ``pool`` as its next step leaves it, which may call it ready.
    """
    condition = Condition(READY, "False", NO_NODE_TYPES, message, now)
    soon = looked_at_within(decided, now, LOOK_AGAIN_SECONDS)
    due_at = decided.due_at if soon else later_than(now, LOOK_AGAIN_SECONDS)
    return replace(decided, conditions=with_condition(pool.conditions, condition), due_at=due_at)


def most_telling_first(pools: Sequence[Pool]) -> list[Pool]:
    """The pools, first those that can have no node: what waits for them waits for ever."""
    return sorted(pools, key=lambda pool: not has_no_types(pool))


def has_no_types(pool: Pool) -> bool:
    """Whether the pool says that it can have no node."""
    return any(condition.type == READY and condition.reason == NO_NODE_TYPES for condition in pool.conditions)
