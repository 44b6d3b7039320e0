"""The claims that a pool makes."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import replace

from stockyard.domain.pools.node_groups import floor_resources, node_properties
from stockyard.domain.pools.records import GROUP, POOL_LABEL, Pool
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.values import ids
from stockyard.domain.values.durations import NEVER
from stockyard.domain.values.requirements import NODE_POOL
from stockyard.errors import Conflict
from stockyard.lifecycle.nodes.pool_drift import template_hash
from stockyard.lifecycle.pools.spread import spread_requirements
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.node_claims.create import acceptance
from stockyard.operations.quotas.network_room import network_refusal, remaining_nodes
from stockyard.operations.quotas.node_claims import Limits, claim_quota_writes, quota_refusal, remaining_claims
from stockyard.operations.services import Services
from stockyard.ports import Check, Replace, Write

AT_ONCE = 10
"""Claims of a transaction: each is seven writes, and a transaction has at most a hundred."""
_NAME_LENGTH = 57


def draft_claim(services: Services, cluster_id: str, pool: Pool) -> NodeClaim:
    """A new claim of the pool, as nobody has written it yet; its name is the pool's and five characters."""
    stem = re.sub(r"[^a-z0-9]+", "-", pool.name.lower()).strip("-")[:_NAME_LENGTH]
    letters = base64.b32encode(services.clock.randomness(5)).decode().lower()[:5]
    return claim_of_pool(pool, cluster_id, services.new_id(ids.NODE_CLAIM), f"{stem}-{letters}", services.now())


def claim_of_pool(pool: Pool, cluster_id: str, id: str, name: str, now: str) -> NodeClaim:
    """Claim of the pool, as its record asks for it."""
    return NodeClaim(
        id=id,
        name=name,
        created_at=now,
        updated_at=now,
        cluster_ref=cluster_id,
        cluster_id=cluster_id,
        provider_ref=pool.provider_ref,
        requirements=spread_requirements(pool),
        resources=floor_resources(pool),
        properties={**node_properties(pool), **pool.labels, POOL_LABEL: pool.name, NODE_POOL: pool.name},
        taints=pool.taints,
        startup_taints=pool.startup_taints,
        kubelet_args=pool.kubelet_args,
        labels={**pool.labels, POOL_LABEL: pool.name},
        annotations=pool.annotations,
        max_price=dict(pool.max_price),
        termination_grace_period=_grace(pool),
        expire_after=pool.expire_after or NEVER,
        created_by=pool.created_by,
        pool=pool.name,
        pool_generation=pool.generation,
        pool_hash=template_hash(pool),
    )


def _grace(pool: Pool) -> str:
    """Time that the deletions of the pool's claims wait for pods. Pools that say nothing wait as long as it takes; node
    groups, whose documents have no word for it, as long as the stage says."""
    return pool.termination_grace_period or ("" if pool.form == GROUP else NEVER)


def batch_size(services: Services, cluster: Cluster, pool: Pool, missing: int) -> int:
    """Number of claims of the pool to ask for next: of those that are missing as many as quotas and the network of the
    cluster leave room for, and at least one, whose refusal says what is used up."""
    network = remaining_nodes(services, cluster)
    if not network:
        raise network_refusal(services, cluster)
    room = min(network, remaining_claims(services, pool.provider_ref, pool.created_by))
    return max(1, min(missing, AT_ONCE, room))


def commit_claims(
    services: Services,
    cluster: Cluster,
    pool: Pool,
    drafts: Sequence[NodeClaim],
    guard: Pool | None = None,
    limits: Limits | None = None,
    besides: Sequence[Write] = (),
    *,
    adopting: bool = False,
) -> dict[str, Pool]:
    """Make claims of a pool in one transaction, at most ``AT_ONCE``; the pools that it has written, by name.

    ``limits`` are those of quotas that who makes many batches has read, see ``claim_quota_writes``. ``besides`` is
    written in the same transaction. ``adopting``: their machines are there already.

    The pool and the ``guard`` must stand at these versions, and the cluster must be ready: else ``Conflict``. Raises
    ``QuotaExceeded``.
    """
    quotas = claim_quota_writes(services, pool.provider_ref, pool.created_by, len(drafts), limits)
    accepted = [acceptance(services, draft, WORKFLOW_ACTOR, adopting=adopting)[1] for draft in drafts]
    claim_writes = [write for writes in accepted for write in writes]
    now = services.now()
    changed = {each.name: replace(each, version=each.version + 1, updated_at=now) for each in (guard or pool, pool)}
    changed[pool.name] = replace(changed[pool.name], claims_made=pool.claims_made + len(drafts))
    fence = Check(Cluster, cluster.id, {"status": "ready"})
    try:
        services.store.commit(*quotas, *map(Replace, changed.values()), fence, *claim_writes, *besides)
    except Conflict as conflict:
        if conflict.index is not None and conflict.index < len(quotas):
            raise quota_refusal(quotas, conflict.index) from conflict
        raise
    return changed
