"""Clusters by event: made, changed, deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from functions.requests.common import audit, outcome, until_changed
from stockyard import wiring
from stockyard.domain.records import Cluster
from stockyard.domain.values import ids
from stockyard.edge.requests import EventRequest
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.services import Services


def _outcome(cluster: Cluster, operation_id: str | None) -> Mapping[str, Any]:
    return outcome(cluster.id, cluster.name, cluster.status, operation_id, cluster.id)


def create(request: EventRequest) -> Mapping[str, Any]:
    """A new cluster."""
    from stockyard.operations.clusters.creation.create import NewCluster, create_cluster

    body, services = request.body, wiring.services(request.tenant)
    # its secret may not travel in an event
    profiles = tuple(choice.model_dump() for choice in body.profiles)
    kept_secret = body.kubeconfig_secret and body.kubeconfig_secret.choice()
    fields = {**dict(body), "secret": None, "profiles": profiles, "kubeconfig_secret": kept_secret}
    new_cluster = NewCluster(**fields, rights=request.rights)
    cluster, _ = create_cluster(services, new_cluster, request.actor, request.lease.stable_id(ids.CLUSTER))
    audit(services, request, "CreateCluster", cluster.id)
    return _outcome(cluster, cluster.operation_id)


def change(request: EventRequest) -> Mapping[str, Any]:
    """The changed cluster."""
    services = wiring.services(request.tenant)
    changed, operation_id = until_changed(lambda: _changed(services, request))
    return _outcome(changed, operation_id)


def _changed(services: Services, request: EventRequest) -> tuple[Cluster, str | None]:
    """The changed cluster, and the operation that has begun with the change; None where none has."""
    from stockyard.operations.clusters.changes import queue
    from stockyard.operations.clusters.changes.alignment import aligned
    from stockyard.operations.clusters.changes.change import change_cluster

    cluster = find_cluster(services, request.cluster)
    if request.body.queue and queue.is_busy(services, cluster):
        operation = queue.enqueue(
            services, cluster.id, request.body.document(), request.actor, request.request_id, rights=request.rights
        )
        return find_cluster(services, cluster.id), operation.id
    changed, _ = change_cluster(
        services,
        cluster.id,
        cluster.version,
        replace(request.body.change_of(aligned(services, cluster)), rights=request.rights),
        actor=request.actor,
        request_id=request.request_id,
    )
    return changed, changed.operation_id if changed.operation_id != cluster.operation_id else None


def delete(request: EventRequest) -> Mapping[str, Any]:
    """The cluster on its way out."""
    from stockyard.operations.clusters.removal.delete import delete_cluster

    services = wiring.services(request.tenant)
    cluster = delete_cluster(services, request.cluster, request.actor)
    audit(services, request, "DeleteCluster", cluster.id)
    return _outcome(cluster, cluster.operation_id)
