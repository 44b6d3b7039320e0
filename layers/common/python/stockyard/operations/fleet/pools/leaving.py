"""Nodes that leave when a cluster's settings or version change, by name: for the plan of a change and its approval.

It asks what the passes ask later: what is too much of a group is given back, and a node is replaced that is not what
its pool would then make.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stockyard.domain import cloud_kinds
from stockyard.domain.pools.records import GROUP, Pool
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.requirements import Requirements
from stockyard.lifecycle.change_phases import UPGRADE_CLUSTER
from stockyard.lifecycle.nodes.pool_drift import pool_drift, template_hash
from stockyard.lifecycle.pools.pool import living, surplus_of
from stockyard.lifecycle.pools.spread import spread_requirements
from stockyard.operations.fleet.pools.follow import as_group, following_pools, most_nodes
from stockyard.operations.fleet.pools.groups import group_pools
from stockyard.operations.fleet.pools.pools import changes_of, claims_of, pools_of
from stockyard.operations.services import Services

_ALL_POOLS = "version_skew"
"""The phase of an upgrade after which the nodes of every pool are replaced, not those of groups alone."""


@dataclass(frozen=True, slots=True)
class LeavingNodes:
    """Nodes that leave one pool, by their names, of ``total`` that are there."""

    pool: str
    total: int
    replaced: tuple[str, ...] = ()
    """Those in whose place others come."""
    given_back: tuple[str, ...] = ()
    """Those that are too much, or whose group is no more."""
    is_group: bool = True
    removed: bool = False
    """Whether the settings have the group no more."""


def leaving_nodes(services: Services, cluster: Cluster, target: Cluster) -> list[LeavingNodes]:
    """Nodes that leave when the ready cluster becomes the target, by pool; pools of which nothing does are not
    named."""
    if target is cluster:
        return []
    targets = {pool.name: pool for pool in group_pools(services, target, "")}
    followed = {pool.name for pool in following_pools(services, cluster)}
    leaving = []
    for pool in sorted(pools_of(services, cluster.id), key=lambda pool: pool.name):
        claims = living(claims_of(services, cluster.id, pool.name))
        if pool.deleting or not claims or (pool.form != GROUP and not _reaches_all(services, cluster, target)):
            continue
        after = targets.get(pool.name) if pool.name in followed else pool
        each = _removed_pool(pool, claims) if after is None else _of_pool(cluster, target, pool, after, claims)
        leaving.append(replace(each, is_group=pool.name in followed))
    return [each for each in leaving if each.replaced or each.given_back]


def _removed_pool(pool: Pool, claims: Sequence[NodeClaim]) -> LeavingNodes:
    return LeavingNodes(pool.name, len(claims), given_back=_names(claims), removed=True)


def _of_pool(cluster: Cluster, target: Cluster, pool: Pool, after: Pool, claims: Sequence[NodeClaim]) -> LeavingNodes:
    moved = _moved(pool, after) if after is not pool else pool
    surplus = surplus_of(moved, claims, most_nodes(after)) if after is not pool else ()
    remaining = [claim for claim in claims if claim not in surplus]
    mapping = cloud_kinds.group_mapping(cluster.provider, cluster.cluster_type, cluster.driver)
    repaves = (target.kubernetes_version, target.nodes_since) != (cluster.kubernetes_version, cluster.nodes_since)
    remade = after is not pool and mapping is not None and mapping.remakes(pool, moved)
    if repaves or remade:
        stale = remaining
    elif moved is pool and target.settings != cluster.settings:
        stale = []  # those that are out of date here were so before
    else:
        stale = stale_claims(target, moved, remaining)
    return LeavingNodes(pool.name, len(claims), _names(stale), _names(surplus))


def _moved(pool: Pool, after: Pool) -> Pool:
    """The record as its group then has it; the same one where it has that already."""
    new_pool = as_group(pool, after)
    if pool.document == new_pool.document and not changes_of(pool, new_pool):
        return pool
    generation = pool.generation + bool(changes_of(pool, new_pool))
    moved: Pool = replace(pool, **new_pool.spec(), document=new_pool.document, generation=generation)
    return moved


def stale_claims(cluster: Cluster, pool: Pool, claims: Sequence[NodeClaim]) -> list[NodeClaim]:
    """Claims whose nodes are not what the pool would make now."""
    requirements, current_hash = Requirements.of(spread_requirements(pool)), template_hash(pool)
    since = max(cluster.nodes_since, pool.nodes_since)
    return [
        claim for claim in claims if not claim.deleting and pool_drift(pool, requirements, current_hash, claim, since)
    ]


def _reaches_all(services: Services, cluster: Cluster, target: Cluster) -> bool:
    """Whether nodes of pools that are no groups leave too."""
    if target.nodes_since != cluster.nodes_since:
        return True
    upgrades = target.kubernetes_version != cluster.kubernetes_version
    return upgrades and _ALL_POOLS in services.procedure(UPGRADE_CLUSTER, cluster.driver).names


def _names(claims: Sequence[NodeClaim]) -> tuple[str, ...]:
    return tuple(sorted(claim.name for claim in claims))
