"""How a decision is given up: nobody leaves, what was made for it is given back, and it is not tried again at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from stockyard.domain.budgets import DRIFTED, EXPIRED, UNDERUTILIZED
from stockyard.domain.disruption_records import IDLE, ClusterDisruption, hold_key
from stockyard.domain.pool_records import Pool
from stockyard.domain.records import NodeClaim
from stockyard.errors import Conflict, NotFound
from stockyard.lifecycle.pool import later_than, living, wanted_nodes
from stockyard.operations.disruption import measurements
from stockyard.operations.disruption.fleet import View
from stockyard.operations.disruption.record import ABANDONED, write
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.operations.services import Services

HOLD_SECONDS = 600
"""How long nothing of the kind is decided after a decision was given up; twice as long each time that follows."""
LONGEST_SECONDS = {UNDERUTILIZED: 3600, DRIFTED: 4 * 3600, EXPIRED: 4 * 3600}
"""The longest of these, by reason: what nodes cost changes with every pod, why a node does not come seldom does."""
SOON_SECONDS = 60
"""When a cluster is looked at again after a decision was given up."""


def abandon(
    services: Services, record: ClusterDisruption, why: str, going: Iterable[str] = (), spare: Sequence[NodeClaim] = ()
) -> ClusterDisruption:
    """Give a decision up. What was made for it and is no node yet is given back, and so is ``spare``.

    ``going`` are the pools of its nodes: for these the same is not decided for a while. Empty: it may be decided soon.
    """
    ids = (*record.replacements, *(claim.id for claim in spare))
    _give_back(services, ids, spare)
    now = services.now()
    until, times = dict(record.held_until), dict(record.held_times)
    for key in {hold_key(record.reason, pool) for pool in going} if record.reason in LONGEST_SECONDS else ():
        longest = LONGEST_SECONDS[record.reason]
        # What was long ago does not count any more.
        is_recent = key in until and now < later_than(until[key], longest)
        before = times.get(key, 0) if is_recent else 0
        times[key] = before + 1
        until[key] = later_than(now, min(longest, HOLD_SECONDS * 2**before))
    fields = {"state": IDLE, "nodes": (), "replacements": (), "leaving": False, "message": why}
    due_at = later_than(now, SOON_SECONDS)
    after = write(services, record, (ABANDONED, why), **fields, due_at=due_at, held_until=until, held_times=times)
    measurements.abandoned(services, record)
    # Whoever was still making some has found this version now, and makes no more.
    _give_back(services, ids, spare)
    return after


def unneeded(
    view: View, pools: Sequence[Pool], claims: Sequence[NodeClaim], coming: Sequence[NodeClaim | None]
) -> list[NodeClaim]:
    """Of what has come for a decision, the nodes on which nothing is, and for which nothing waits. Their pools have the
    nodes without them that they have to have."""
    empty = {node.name for node in view.fleet.nodes if node.empty}
    counts = {pool.name: len(living([c for c in claims if c.pool == pool.name])) - wanted_nodes(pool) for pool in pools}
    spare = []
    for claim in coming:
        if claim is None or claim.deleting or claim.phase != "Available" or claim.node_name not in empty:
            continue
        if counts.get(claim.pool, 0) > 0:
            counts[claim.pool] -= 1
            spare.append(claim)
    return spare


def _give_back(services: Services, claim_ids: Iterable[str], spare: Sequence[NodeClaim]) -> None:
    """Give back those of the claims that are there and no node yet, and the spare ones."""
    spare_ids = {claim.id for claim in spare}
    for claim_id in claim_ids:
        claim = services.store.get(NodeClaim, claim_id)
        if claim is not None and not claim.deleting and (claim.phase != "Available" or claim_id in spare_ids):
            with suppress(NotFound, Conflict):
                delete_claim(services, claim_id, WORKFLOW_ACTOR)
