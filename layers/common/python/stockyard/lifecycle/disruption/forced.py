"""Nodes that have to go whatever they cost: too old, not ready, or about to be taken back by their cloud. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from stockyard.domain.pools.records import Pool
from stockyard.domain.pools.workload_records import NodeFacts
from stockyard.domain.records import NodeClaim
from stockyard.domain.values import durations, times
from stockyard.lifecycle.nodes.interruption import is_interrupted
from stockyard.lifecycle.nodes.node_claim import AVAILABLE

REPAIR_SECONDS = 1800
"""How long a node may not be ready before it is replaced, as with Karpenter's repair of nodes."""
REPAIR_PERCENT = 20
"""When more of a pool's nodes are not ready, none is repaired: then the fault is hardly theirs. Karpenter's rule."""


def expires_at(claim: NodeClaim, pool: Pool | None) -> datetime | None:
    """Moment when the node becomes too old, as it was promised when it was made; None: never. A pool that says
    something else by now has drifted nodes: they are replaced in order, not at once and past every protection."""
    text = claim.expire_after or (pool.expire_after if pool is not None else "")
    seconds = durations.seconds(text) if pool is not None else None
    if seconds is None:
        return None
    try:
        return times.from_text(claim.created_at) + timedelta(seconds=seconds)
    except OverflowError:
        return None


def is_leaving(claim: NodeClaim) -> bool:
    """Whether pods that are still on the claim's node need another one: it leaves, or its cloud takes it back."""
    return claim.deleting or claim.phase == "Failed" or is_interrupted(claim)


def unready_until(claim: NodeClaim, facts: NodeFacts | None) -> datetime | None:
    """Until when a node that is not ready may become so again before it is replaced; None for any other."""
    unready = claim.phase == AVAILABLE and not claim.deleting and facts is not None and facts.ready != "True"
    if not unready or facts is None or facts.ready_since is None:
        return None
    return times.from_text(facts.ready_since) + timedelta(seconds=REPAIR_SECONDS)


def to_repair(claims: Sequence[NodeClaim], facts: Mapping[str, NodeFacts | None], now: datetime) -> Sequence[NodeClaim]:
    """The claims of one pool whose nodes have not been ready for too long; ``facts`` are by the id of the claim.

    None where more of the pool's nodes than ``REPAIR_PERCENT``, rounded up, are not ready.
    """
    nodes = [claim for claim in claims if claim.phase == AVAILABLE and not claim.deleting]
    until = {claim.id: moment for claim in nodes if (moment := unready_until(claim, facts.get(claim.id))) is not None}
    if len(until) > -(-REPAIR_PERCENT * len(nodes) // 100):
        return ()
    return [claim for claim in nodes if claim.id in until and until[claim.id] <= now]
