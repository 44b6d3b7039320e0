"""Clusters of earlier releases, where pools of groups were changed as pools: their settings say what the pools are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stockyard.domain import cloud_kinds
from stockyard.domain.pools.group_mapping import Group, GroupMapping
from stockyard.domain.pools.node_groups import GROUPS, WORKER, followed_entries, followed_setting, follows, name_of
from stockyard.domain.pools.records import GROUP, Pool
from stockyard.domain.records import Cluster
from stockyard.operations.fleet.pools.groups import group_pools
from stockyard.operations.fleet.pools.pools import GROUP_FIELDS, pools_of
from stockyard.operations.services import Services


def aligned(services: Services, cluster: Cluster) -> Cluster:
    """The cluster with settings that its pools can follow. What is on the record stays until something changes it."""
    if cluster.pools_follow or GROUPS in cluster.settings or not follows(cluster):
        return cluster
    mapping = cloud_kinds.group_mapping(cluster.provider, cluster.cluster_type, cluster.driver)
    if mapping is None:
        return cluster
    groups = list(_groups(services, cluster, mapping))
    return replace(cluster, settings={**cluster.settings, followed_setting(cluster): groups})


def _groups(services: Services, cluster: Cluster, mapping: GroupMapping) -> Iterator[Group]:
    drafts = {pool.name: pool for pool in group_pools(services, cluster, "")}
    present = {pool.name: pool for pool in pools_of(services, cluster.id) if pool.form == GROUP and not pool.deleting}
    for group in followed_entries(cluster):
        pool, draft = present.pop(name_of(group), None), drafts.get(name_of(group))
        if group.get("role") != WORKER:
            yield group
        elif pool is not None:
            yield group if draft is None or _is_same(pool, draft) else {**group, **mapping.group_of_pool(pool)}
    for pool in present.values():
        yield mapping.group_of_pool(pool)


def _is_same(pool: Pool, draft: Pool) -> bool:
    draft = replace(draft, limits={**pool.limits, **draft.limits})
    return all(getattr(pool, name) == getattr(draft, name) for name in GROUP_FIELDS)
