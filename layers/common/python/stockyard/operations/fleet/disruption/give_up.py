"""Steps by which a decision is given up: nobody leaves, what was made for it is given back, and it is not tried again
at once.

After a replacement that failed only the nodes of its decision are held, and shortly at first: what could not be had is
held for longer, so that the next decision takes another type, and other nodes go on leaving.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

from stockyard.domain.pools.budgets import DRIFTED, EXPIRED, UNDERUTILIZED
from stockyard.domain.pools.disruption_records import IDLE, TYPE, ClusterDisruption, hold_key, node_key, type_key
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import NodeClaim
from stockyard.errors import Conflict, NotFound
from stockyard.lifecycle.pools.pool import later_than, living, wanted_nodes
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.fleet.disruption import measurements
from stockyard.operations.fleet.disruption.fleet import View
from stockyard.operations.fleet.disruption.record import ABANDONED, write
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.operations.services import Services

HOLD_SECONDS = 600
"""How long nothing of the kind is decided after a decision whose replacements came, or may come yet, in vain; twice as
long each time that follows."""
FAILED_SECONDS = 60
"""The same for a node whose replacement did not come."""
LONGEST_SECONDS = {UNDERUTILIZED: 3600, TYPE: 3600, DRIFTED: 4 * 3600, EXPIRED: 4 * 3600}
"""The longest of these, by what their keys begin with. What nodes cost changes with every pod, why a node does not come
seldom does."""
SOON_SECONDS = 60
"""When a cluster is looked at again after a decision was given up."""


def abandon(
    services: Services,
    record: ClusterDisruption,
    why: str,
    holds: Mapping[str, int] = MappingProxyType({}),
    spare: Sequence[NodeClaim] = (),
) -> ClusterDisruption:
    """Give a decision up. What was made for it and is no node yet is given back, and so is ``spare``.

    ``holds`` has what is held for a while, see ``failed_holds`` and ``vain_holds``: for how many seconds at first, by
    its key. Empty: the same may be decided soon.
    """
    ids = (*record.replacements, *(claim.id for claim in spare))
    _give_back(services, ids, spare)
    now = services.now()
    # What was long ago does not count any more.
    until = {
        key: held_until for key, held_until in record.held_until.items() if now < later_than(held_until, _longest(key))
    }
    times = {key: count for key, count in record.held_times.items() if key in until}
    for key, seconds in holds.items():
        before = times.get(key, 0)
        times[key] = before + 1
        until[key] = later_than(now, min(_longest(key), seconds * 2 ** min(before, 10)))
    fields = {"state": IDLE, "nodes": (), "replacements": (), "failures": {}, "leaving": False, "message": why}
    due_at = later_than(now, SOON_SECONDS)
    after = write(services, record, (ABANDONED, why), **fields, due_at=due_at, held_until=until, held_times=times)
    measurements.abandoned(services, record)
    # Whoever was still making some has found this version now, and makes no more.
    _give_back(services, ids, spare)
    return after


def failed_holds(record: ClusterDisruption, types: Iterable[str] = ()) -> dict[str, int]:
    """Holds after a replacement of the decision failed: its nodes and no others, and the ``types`` that could not be
    had."""
    holds = {node_key(record.reason, claim_id): FAILED_SECONDS for claim_id in record.nodes}
    return {**holds, **{type_key(name): HOLD_SECONDS for name in types}}


def vain_holds(record: ClusterDisruption, claims: Sequence[NodeClaim]) -> dict[str, int]:
    """Holds after the decision turned out wrong though nothing failed: of nodes that leave for their price all, as the
    next decision may be as wrong; else its nodes, or their pools where these make what comes by themselves."""
    if record.reason not in LONGEST_SECONDS:
        return {}
    if record.replacements and record.reason != UNDERUTILIZED:
        keys = {node_key(record.reason, claim_id) for claim_id in record.nodes}
    else:
        keys = {hold_key(record.reason, claim.pool) for claim in claims if claim.id in record.nodes}
    return dict.fromkeys(sorted(keys), HOLD_SECONDS)


def _longest(key: str) -> int:
    return LONGEST_SECONDS.get(key.partition("/")[0], HOLD_SECONDS)


def unneeded(
    view: View, pools: Sequence[Pool], claims: Sequence[NodeClaim], coming: Sequence[NodeClaim | None]
) -> list[NodeClaim]:
    """Nodes that have come for a decision, on which nothing is, and for which nothing waits. Their pools have the nodes
    without them that they have to have."""
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
