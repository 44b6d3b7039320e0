"""Pools of node groups follow the settings of their cluster, in the phases of an operation that changes them.

Before the driver changes the groups in the cloud, what is too much leaves: pools whose groups the settings have no
more, and nodes beyond a group's new most. The pools that stay become what their groups say, so that nodes which come
from now on are as they are to be; those that differ have drifted, and are replaced like any others. When the cloud has
the new groups, and room in those that grow, pools get them too.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from stockyard.domain import cloud_kinds
from stockyard.domain.pools.node_groups import follows
from stockyard.domain.pools.records import GROUP, NODES, NewPool, Pool
from stockyard.domain.records import Cluster
from stockyard.domain.values.quantities import milli
from stockyard.errors import Conflict, NotFound
from stockyard.lifecycle.pools.pool import living, surplus_of
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.engine.step import NAMED
from stockyard.operations.fleet.pools.groups import group_pools
from stockyard.operations.fleet.pools.pools import (
    GROUP_FIELDS,
    changed_pool,
    changes_of,
    claims_of,
    creation,
    give_back_pool,
    pools_of,
)
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.operations.services import Services
from stockyard.ports import Check, Outcome, Replace

LOOK_AGAIN, AT_ONCE = 30, 1
"""Seconds until the next look: at nodes that leave, and at what somebody else wrote just now."""


def most_nodes(pool: Pool) -> int:
    """Largest number of nodes that a group's pool may have."""
    return milli(pool.limits[NODES]) // 1000


def following_pools(services: Services, cluster: Cluster) -> list[Pool]:
    """The cluster's pools that are groups of its settings, or were."""
    if not follows(cluster):
        return []
    return [pool for pool in pools_of(services, cluster.id) if pool.form == GROUP]


def release_surplus(services: Services, cluster: Cluster) -> Outcome:
    """Give back the pools of groups that the settings have no more, and the nodes beyond the most of a group. Done when
    they are gone: until then a node may hold work."""
    targets = {pool.name: pool for pool in group_pools(services, cluster, WORKFLOW_ACTOR)}
    leaving: list[str] = []
    try:
        for pool in following_pools(services, cluster):
            if pool.name in targets and not pool.deleting:
                leaving += _shrunk(services, cluster, pool, targets[pool.name])
            else:
                give_back_pool(services, pool, WORKFLOW_ACTOR)
                leaving += [f"pool {pool.name}"]
    except (Conflict, NotFound):
        return Outcome(False, "Pools were changed by somebody else just now.", wait_seconds=AT_ONCE)
    if not leaving:
        return Outcome(True, "Nothing is too much.")
    more = f" and {len(leaving) - NAMED} more" if len(leaving) > NAMED else ""
    return Outcome(False, f"Waiting for {', '.join(leaving[:NAMED])}{more} to leave.", wait_seconds=LOOK_AGAIN)


def _shrunk(services: Services, cluster: Cluster, pool: Pool, target: Pool) -> list[str]:
    """The nodes beyond the most that the group is to have, which leave; no pod makes others from now on."""
    most = most_nodes(target)
    limits, floor = (target.limits if most < most_nodes(pool) else pool.limits), min(pool.floor, target.floor)
    pool = _moved(services, cluster, pool, replace(target, limits=limits, floor=floor))
    for claim in surplus_of(pool, living(claims_of(services, pool.cluster_id, pool.name)), most):
        with suppress(NotFound, Conflict):
            delete_claim(services, claim.id, WORKFLOW_ACTOR)
    remaining = claims_of(services, pool.cluster_id, pool.name)
    return [f"node {claim.name}" for claim in remaining if claim.deleting][: max(0, len(remaining) - most)]


def follow_settings(services: Services, cluster: Cluster) -> Outcome:
    """Make the pools of new groups, and let the others become what their groups say."""
    present = {pool.name: pool for pool in following_pools(services, cluster)}
    created, changed = 0, 0
    try:
        for target in group_pools(services, cluster, WORKFLOW_ACTOR):
            pool = present.get(target.name)
            if pool is None:
                ready = Check(Cluster, cluster.id, {"status": "ready"})
                services.store.commit(*creation(services, target, WORKFLOW_ACTOR), ready)
                created += 1
            elif pool.deleting:
                return Outcome(False, f"Waiting for pool {pool.name} of before to leave.", wait_seconds=LOOK_AGAIN)
            elif _moved(services, cluster, pool, target) is not pool:
                changed += 1
    except Conflict:
        return Outcome(False, "Pools were changed by somebody else just now.", wait_seconds=AT_ONCE)
    return Outcome(True, f"{created} pools were made, and {changed} changed.")


def as_group(pool: Pool, target: Pool) -> NewPool:
    """The pool with all settings of its group ``target``."""
    fields = {name: getattr(target, name) for name in GROUP_FIELDS}
    # What its nodes may cost or have together, only the pool says.
    fields["limits"] = {**pool.limits, **target.limits}
    return NewPool(name=pool.name, form=pool.form, document=target.document, **{**pool.spec(), **fields})


def _moved(services: Services, cluster: Cluster, pool: Pool, target: Pool) -> Pool:
    """The pool with all that its group says of it; the same one where it has that already."""
    new_pool = as_group(pool, target)
    if pool.document == target.document and not changes_of(pool, new_pool):
        return pool
    moved, writes = changed_pool(services, pool, new_pool, WORKFLOW_ACTOR)
    mapping = cloud_kinds.group_mapping(cluster.provider, cluster.cluster_type, cluster.driver)
    if mapping is not None and mapping.remakes(pool, new_pool):
        moved = replace(moved, nodes_since=services.now())
    services.store.commit(Replace(moved), *writes[1:])
    return moved
