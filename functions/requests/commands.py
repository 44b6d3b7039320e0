"""Handlers of request events. Each loads its own use case, because an event needs one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockyard import wiring
from stockyard.domain.records import Cluster
from stockyard.domain.values import ids
from stockyard.domain.values.rights import OPERATOR
from stockyard.edge.requests import EventCommand, EventRequest
from stockyard.errors import PreconditionFailed
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.services import Services

TRIES = 5
"""How often a change is tried again that somebody else was in the way of."""


def _audited(services: Services, request: EventRequest, action: str, cluster: Cluster) -> Mapping[str, Any]:
    wiring.audit(request.tenant, services.audit_record(request.actor, action, cluster.id, request.request_id))
    return {"cluster": cluster.id, "operation_id": cluster.operation_id, "status": cluster.status}


def _create(request: EventRequest) -> Mapping[str, Any]:
    from stockyard.operations.clusters.creation.create import NewCluster, create_cluster

    body, services = request.body, wiring.services(request.tenant)
    # its secret may not travel in an event
    profiles = tuple(choice.model_dump() for choice in body.profiles)
    kept_secret = body.kubeconfig_secret and body.kubeconfig_secret.choice()
    fields = {**dict(body), "secret": None, "profiles": profiles, "kubeconfig_secret": kept_secret}
    new_cluster = NewCluster(**fields)
    cluster, _ = create_cluster(services, new_cluster, request.actor, request.lease.stable_id(ids.CLUSTER))
    return _audited(services, request, "CreateCluster", cluster)


def _change(request: EventRequest) -> Mapping[str, Any]:
    services = wiring.services(request.tenant)
    for remaining in range(TRIES, -1, -1):
        try:
            changed, operation_id = _changed(services, request)
            break
        except PreconditionFailed:
            # An event names no version: what it asks for holds for the cluster as it is by then.
            if not remaining:
                raise
    return {"cluster": changed.id, "operation_id": operation_id, "status": changed.status}


def _changed(services: Services, request: EventRequest) -> tuple[Cluster, str | None]:
    """The changed cluster, and the operation that has begun with the change; None where none has."""
    from stockyard.operations.clusters.changes import queue
    from stockyard.operations.clusters.changes.alignment import aligned
    from stockyard.operations.clusters.changes.change import change_cluster

    cluster = find_cluster(services, request.cluster)
    if request.body.queue and queue.is_busy(services, cluster):
        operation = queue.enqueue(
            services, cluster.id, request.body.document(), request.actor, request.request_id, rights=OPERATOR
        )
        return find_cluster(services, cluster.id), operation.id
    changed, _ = change_cluster(
        services,
        cluster.id,
        cluster.version,
        request.body.change_of(aligned(services, cluster)),
        actor=request.actor,
        request_id=request.request_id,
    )
    return changed, changed.operation_id if changed.operation_id != cluster.operation_id else None


def _delete(request: EventRequest) -> Mapping[str, Any]:
    from stockyard.operations.clusters.removal.delete import delete_cluster

    services = wiring.services(request.tenant)
    return _audited(services, request, "DeleteCluster", delete_cluster(services, request.cluster, request.actor))


COMMANDS: Mapping[str, EventCommand] = {
    "CreateCluster": EventCommand("clusters.clusters:ClusterCreate", False, _create),
    "ChangeCluster": EventCommand("clusters.patch:ClusterPatch", True, _change),
    "DeleteCluster": EventCommand(None, True, _delete),
}
