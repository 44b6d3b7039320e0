"""Claims for nodes that node groups have made by themselves: the first ones of a cluster, and those that replace
machines that died. Such a claim takes a machine of its group like any other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from stockyard.domain.pools.records import GROUP, NODES, Pool
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.values.quantities import milli
from stockyard.errors import Conflict, QuotaExceeded
from stockyard.lifecycle.pools.pool import QUOTA, living, refused
from stockyard.operations.fleet.pools.claims import batch_size, commit_claims, draft_claim
from stockyard.operations.fleet.pools.groups import ensure_provider
from stockyard.operations.fleet.pools.pools import claims_of
from stockyard.operations.machines.unclaimed import unclaimed_machines
from stockyard.operations.services import Services
from stockyard.ports import Replace


def adopt(services: Services, cluster: Cluster, pools: Sequence[Pool], claims: Sequence[NodeClaim] | None) -> int:
    """Make claims for the machines that nobody has; how many. ``claims`` are those of the cluster; None: they are
    read. What somebody else has changed meanwhile is left to the next pass."""
    machines = unclaimed_machines(services, cluster)
    groups = [pool for pool in pools if pool.form == GROUP and not pool.deleting and machines.get(pool.name)]
    if not groups:
        return 0
    present = claims_of(services, cluster.id) if claims is None else claims
    count = 0
    for pool in groups:
        with suppress(Conflict):
            # A pool whose floor is 0 has needed no provider so far.
            ensure_provider(services, cluster, pool)
            missing = missing_claims(pool, present, len(machines[pool.name]))
            count += _make(services, cluster, pool, missing)
    return count


def missing_claims(pool: Pool, claims: Sequence[NodeClaim], machines: int) -> int:
    """Number of claims that the pool lacks for so many machines: claims that wait for one will take them first, and it
    has no more nodes than its limit says."""
    current = [claim for claim in living(claims) if claim.pool == pool.name]
    waiting = sum(not claim.machine_id for claim in current)
    room = milli(pool.limits[NODES]) // 1000 - len(current) if NODES in pool.limits else machines
    return max(0, min(machines - waiting, room))


def _make(services: Services, cluster: Cluster, pool: Pool, missing: int) -> int:
    count = 0
    try:
        while count < missing:
            size = batch_size(services, cluster, pool, missing - count)
            drafts = [draft_claim(services, cluster.id, pool) for _ in range(size)]
            pool = commit_claims(services, cluster, pool, drafts, adopting=True)[pool.name]
            count += len(drafts)
    except QuotaExceeded as refusal:
        _say(services, pool, f"{refusal.detail} {missing - count} machines of the pool run without a claim.")
    return count


def _say(services: Services, pool: Pool, text: str) -> None:
    """The pool says which quota keeps it from having its nodes. They stay in the cluster without a claim."""
    changed = refused(pool, QUOTA, text, services.now())
    services.store.commit(Replace(replace(changed, version=pool.version + 1, updated_at=services.now())))
