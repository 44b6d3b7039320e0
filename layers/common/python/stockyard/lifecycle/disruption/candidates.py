"""Candidates for disruption by price, emptiness or drift: Karpenter's rules. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from stockyard.domain.pools.records import CONTROL_PLANE, DYNAMIC, Pool
from stockyard.domain.pools.workload_records import NodeFacts
from stockyard.domain.records import NodeClaim
from stockyard.domain.values import durations, times
from stockyard.lifecycle.disruption.protection import FOREVER, do_not_disrupt
from stockyard.lifecycle.nodes.drift import drifted_since
from stockyard.lifecycle.nodes.interruption import is_interrupted
from stockyard.lifecycle.nodes.node_claim import AVAILABLE


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Reason why a node may not go, in words. ``until`` is when that ends by itself; None: nobody knows."""

    why: str
    until: datetime | None = None


def is_ready(claim: NodeClaim, facts: NodeFacts | None) -> bool:
    """Whether the claim is a node that pods can be on."""
    return claim.phase == AVAILABLE and not claim.deleting and facts is not None and facts.ready == "True"


def is_paused(pool: Pool) -> bool:
    """Whether somebody has paused the disruption of the pool. Nodes that are not ready, or that their cloud takes back,
    go all the same."""
    return bool(pool.disruption.get("paused"))


def obstacle(
    claim: NodeClaim,
    pool: Pool | None,
    facts: NodeFacts | None,
    budgets: Mapping[str, int],
    now: datetime,
    *,
    empty: bool = False,
) -> Obstacle | None:
    """Obstacle that keeps a node from being removed or replaced to save money. ``budgets`` are the evictions that
    PodDisruptionBudgets allow now. A cordon keeps a node with pods; an ``empty`` one goes, as with Karpenter."""
    if pool is not None and pool.kind != DYNAMIC:
        return Obstacle(f"pool {pool.name} is static")
    general = _of_node(claim, pool, facts, empty=empty)
    if general is not None or pool is None or facts is None:
        return general
    return _quiet(claim, pool, facts, now) or _of_pods(facts, budgets, now)


def obstacle_of_drift(
    claim: NodeClaim,
    pool: Pool | None,
    facts: NodeFacts | None,
    budgets: Mapping[str, int],
    now: datetime,
    *,
    empty: bool = False,
) -> Obstacle | None:
    """Obstacle that keeps a node that has drifted from being replaced. Where pods have a deadline, they keep
    nothing."""
    general = _of_node(claim, pool, facts, empty=empty)
    if general is not None or facts is None or durations.seconds(claim.termination_grace_period) is not None:
        return general
    return _of_pods(facts, budgets, now)


def _of_node(claim: NodeClaim, pool: Pool | None, facts: NodeFacts | None, *, empty: bool) -> Obstacle | None:
    if claim.control_plane and claim.pool == CONTROL_PLANE:
        return Obstacle("it is a member of the control plane")
    if pool is None or pool.deleting:
        return Obstacle("it is of no pool")
    if facts is None or not is_ready(claim, facts):
        return Obstacle("it is not ready")
    rules = (
        (is_paused(pool), f"the disruption of pool {pool.name} is paused"),
        (is_interrupted(claim), "its cloud may take it back"),
        (facts.unschedulable and not empty, "somebody has cordoned it"),
        (facts.do_not_disrupt, "the node has the annotation karpenter.sh/do-not-disrupt"),
    )
    return next((Obstacle(why) for holds, why in rules if holds), None)


def _of_pods(facts: NodeFacts, budgets: Mapping[str, int], now: datetime) -> Obstacle | None:
    """Obstacle in the pods of the node."""
    if facts.doubly_guarded:
        return Obstacle(f"{facts.doubly_guarded} of its pods have more than one PodDisruptionBudget")
    for name in sorted(facts.budgets):
        if not budgets.get(name):
            return Obstacle(f"PodDisruptionBudget {name} allows no eviction")
    for pod in facts.protected:
        until = do_not_disrupt(pod.value, pod.started_at, times.to_text(now))
        if until == FOREVER:
            return Obstacle(f"pod {pod.name} is not to be disrupted")
        if until is not None:
            return Obstacle(f"pod {pod.name} is not to be disrupted until {until}", times.from_text(until))
    return None


def _quiet(claim: NodeClaim, pool: Pool, facts: NodeFacts, now: datetime) -> Obstacle | None:
    """The obstacle of a node whose pods moved too short a time ago, or that is never to be consolidated."""
    text = pool.disruption.get("consolidateAfter", "0s")
    if text == durations.NEVER:
        return Obstacle(f"pool {pool.name} is never consolidated")
    since = facts.pod_event_at or facts.ready_since or claim.created_at
    until = times.from_text(since) + timedelta(seconds=durations.seconds(text) or 0)
    return Obstacle(f"its pods moved less than {text} ago", until) if now < until else None


def drifted(claims: Sequence[NodeClaim]) -> Sequence[NodeClaim]:
    """The claims that are not as they would be made now, the longest first."""
    since = {claim.id: moment for claim in claims if (moment := drifted_since(claim))}
    by_id = {claim.id: claim for claim in claims}
    return [by_id[claim_id] for claim_id in sorted(since, key=lambda claim_id: (since[claim_id], claim_id))]
