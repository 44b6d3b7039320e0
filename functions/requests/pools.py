"""Pools of clusters by event: made, changed, deleted. Their nodes are made and given back in the background."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functions.requests.common import audit, deletion, outcome, until_changed
from stockyard import wiring
from stockyard.domain.pools.records import Pool
from stockyard.domain.values import ids
from stockyard.edge.requests import EventRequest
from stockyard.operations.engine.find import find_cluster


def _outcome(pool: Pool, operation_id: str | None = None) -> Mapping[str, Any]:
    from stockyard.lifecycle.pools.pool import shown_status

    return outcome(pool.id, pool.name, shown_status(pool), operation_id, pool.cluster_id)


def create(request: EventRequest) -> Mapping[str, Any]:
    """A new pool of a cluster."""
    from stockyard.operations.fleet.pools import pools
    from stockyard.operations.fleet.pools.plan import plan_pool

    services = wiring.services(request.tenant)
    cluster, new_pool = find_cluster(services, request.cluster), request.body.new_pool()
    name = request.lease.stable_id(ids.POOL_REQUEST)
    if not request.again:
        plan_pool(services, cluster, new_pool)
    pool = pools.create_pool(services, cluster, new_pool, request.actor, name)
    audit(services, request, "CreatePool", pool.id)
    return _outcome(pool)


def change(request: EventRequest) -> Mapping[str, Any]:
    """The changed pool. What a node group of the cluster's settings decides is changed there, by an operation."""
    return until_changed(lambda: _changed(request))


def _changed(request: EventRequest) -> Mapping[str, Any]:
    from stockyard.operations.clusters import groups
    from stockyard.operations.fleet.pools import pools

    services, actor = wiring.services(request.tenant), request.actor
    cluster = find_cluster(services, request.cluster)
    pool = pools.find_pool(services, cluster, request.names["pool"])
    changed = request.body.apply_to(pool)
    if groups.is_group(cluster, pool) and pools.group_changes(pool, changed):
        patch = groups.altered_groups(services, cluster, pool, changed, request.body.model_fields_set)
        queue, request_id = request.body.queue, request.request_id
        operation_id, _ = groups.change_groups(services, cluster, patch, actor, request_id, queue=queue)
        return _outcome(pool, operation_id)
    moved = pools.change_pool(services, cluster, pool, pool.version, changed, actor, request.request_id)
    return _outcome(moved)


def delete(request: EventRequest) -> Mapping[str, Any]:
    """The pool on its way out. That of a node group leaves the cluster's settings by a change of the cluster."""
    return deletion(request, lambda: _deleted(request), request.names["pool"])


def _deleted(request: EventRequest) -> Mapping[str, Any]:
    from stockyard.operations.fleet.pools import pools

    services = wiring.services(request.tenant)
    cluster = find_cluster(services, request.cluster)
    pool = pools.delete_pool(services, cluster, request.names["pool"], request.actor)
    audit(services, request, "DeletePool", pool.id)
    return _outcome(pool)
