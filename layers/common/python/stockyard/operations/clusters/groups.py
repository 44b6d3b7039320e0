"""The pools of a cluster's node groups, changed by their name: each is a change of the cluster's settings.

Who scales, alters or removes such a pool need not send all groups. What is sent becomes a merge patch of the cluster,
and goes its way: checks, an operation, or a place in the queue.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Any

from stockyard.domain import cloud_kinds
from stockyard.domain.clusters.change import ClusterChange
from stockyard.domain.pools.group_mapping import GroupMapping
from stockyard.domain.pools.node_groups import followed_entries, followed_setting, follows, name_of
from stockyard.domain.pools.records import GROUP, NewPool, Pool
from stockyard.domain.records import Cluster
from stockyard.domain.values.pointers import pointer
from stockyard.errors import FieldProblem, InvalidInput, PreconditionFailed
from stockyard.operations.clusters.changes.alignment import aligned
from stockyard.operations.clusters.changes.change import change_cluster
from stockyard.operations.clusters.changes.queue import enqueue, is_busy
from stockyard.operations.clusters.changes.reconfigure import operation_kind, plan_change
from stockyard.operations.engine.advance import TRIES
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.fleet.pools.pools import GROUP_FIELDS, changes_of, group_changes
from stockyard.operations.services import Services


def is_group(cluster: Cluster, pool: Pool) -> bool:
    """Whether the pool follows a group of the cluster's settings."""
    return follows(cluster) and pool.form == GROUP


def altered_groups(
    services: Services, cluster: Cluster, pool: Pool, changed: NewPool, sent: Set[str]
) -> dict[str, Any]:
    """The merge patch of the cluster that makes the pool so. ``InvalidInput`` for what a group cannot say, or for
    fields beside it that only the pool has. ``sent`` names the fields of the request."""
    fields = group_changes(pool, changed)
    own_fields = sorted(sent & changes_of(pool, changed).keys() - GROUP_FIELDS)
    if own_fields:
        text = f"is the pool's own: change it apart from {' and '.join(fields)}, which the cluster's settings have"
        raise InvalidInput(text, errors=[FieldProblem(pointer(name), text) for name in own_fields])
    mapping = _mapping(cluster)
    before, after = mapping.group_of_pool(pool), mapping.group_of_pool(changed)
    differing = {name: value for name, value in after.items() if value != before.get(name)}
    entries = [dict(group) for group in followed_entries(aligned(services, cluster))]
    entry = next((entry for entry in entries if name_of(entry) == pool.name), None)
    if entry is None:
        raise InvalidInput(f"The cluster's settings have no group {pool.name} any more.")
    entry |= differing
    if "count" in entry:
        entry["count"] = min(max(entry["count"], entry["min_size"]), entry["max_size"])
    _check_said(mapping, entry, pool, changed, fields)
    return {"settings": {followed_setting(cluster): entries}}


def remaining_groups(services: Services, cluster: Cluster, pool: Pool) -> dict[str, Any]:
    """The merge patch of the cluster that removes the pool."""
    entries = [group for group in followed_entries(aligned(services, cluster)) if name_of(group) != pool.name]
    return {"settings": {followed_setting(cluster): entries}}


def change_groups(
    services: Services, cluster: Cluster, patch: dict[str, Any], actor: str, request_id: str, *, queue: bool
) -> tuple[str, list[dict[str, str]]]:
    """The id of the operation that brings the groups about, the cluster's last one where they are so already, and the
    warnings of its dry run. One that waits for its turn is checked then."""
    if queue and is_busy(services, cluster):
        return enqueue(services, cluster.id, patch, actor, request_id).id, []
    for _ in range(TRIES):
        try:
            change = ClusterChange(settings=_settings(services, cluster, patch))
            changed, warnings = change_cluster(services, cluster.id, None, change, actor=actor, request_id=request_id)
        except PreconditionFailed:
            # Nobody has named the cluster's version: what else was written to it meanwhile is no matter of theirs.
            cluster = find_cluster(services, cluster.id)
        else:
            return str(changed.operation_id), warnings
    raise PreconditionFailed("The cluster changes too often.")


def plan_groups(services: Services, cluster: Cluster, patch: dict[str, Any]) -> dict[str, Any]:
    """The dry run of that."""
    before = aligned(services, cluster)
    target = ClusterChange(settings=_settings(services, cluster, patch)).target(before)
    operation_kind(services, before, target)
    return plan_change(services, before, target, {})


def _settings(services: Services, cluster: Cluster, patch: dict[str, Any]) -> dict[str, Any] | None:
    from stockyard.domain.models.base import read  # loads pydantic
    from stockyard.domain.models.clusters.patch import ClusterPatch

    return read(ClusterPatch, patch).settings_after(aligned(services, cluster))


def check_confirmed(pool: Pool, confirmation: str | None) -> None:
    """``InvalidInput`` unless the pool's name was repeated."""
    if confirmation != pool.name:
        text = f"Its nodes are drained and given back: confirm that by the pool's name, ?confirm={pool.name}."
        raise InvalidInput(text, errors=[FieldProblem("/confirm", "must be the name of the pool")])


def _mapping(cluster: Cluster) -> GroupMapping:
    mapping = cloud_kinds.group_mapping(cluster.provider, cluster.cluster_type, cluster.driver)
    if mapping is None:
        raise InvalidInput(f"Clusters made by the driver {cluster.driver} have no node groups.")
    return mapping


def _check_said(mapping: GroupMapping, entry: dict[str, Any], pool: Pool, changed: NewPool, fields: list[str]) -> None:
    as_group = mapping.pool_of_group(entry, pool.provider_ref)
    as_group = replace(as_group, limits={**pool.limits, **as_group.limits})
    text = "cannot be said by a node group of the cluster's settings"
    faults = [FieldProblem(pointer(name), text) for name in fields if getattr(as_group, name) != getattr(changed, name)]
    if faults:
        raise InvalidInput(f"{', '.join(fields)}: {text}.", errors=faults)
