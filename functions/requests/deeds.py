"""What each request event does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockyard import wiring
from stockyard.domain import ids
from stockyard.domain.records import AuditRecord, Cluster
from stockyard.edge.requests import Deed, Wish
from stockyard.errors import PreconditionFailed
from stockyard.operations.advance import find
from stockyard.operations.change_cluster import change_cluster
from stockyard.operations.create_cluster import NewCluster, create_cluster
from stockyard.operations.delete_cluster import delete_cluster
from stockyard.operations.services import Services

TRIES = 5
"""How often a change is tried again that somebody else was in the way of."""


def _done(services: Services, wish: Wish, action: str, cluster: Cluster) -> Mapping[str, Any]:
    record = AuditRecord(
        services.new_id(ids.AUDIT), services.now(), wish.actor, action, cluster.id, "done", wish.request_id
    )
    wiring.audit(wish.tenant, record)
    return {"cluster": cluster.id, "operation_id": cluster.operation_id, "status": cluster.status}


def _create(wish: Wish) -> Mapping[str, Any]:
    body, services = wish.body, wiring.services(wish.tenant)
    wanted = NewCluster(
        name=body.name,
        description=body.description,
        cloud_account_id=body.cloud_account_id,
        cluster_type=body.cluster_type,
        settings=body.settings.normal(),
        tags=dict(body.tags),
    )
    given = ids.make(ids.CLUSTER, wish.claim.moment, wish.claim.randomness)
    cluster, _ = create_cluster(services, wanted, wish.actor, given)
    return _done(services, wish, "CreateCluster", cluster)


def _change(wish: Wish) -> Mapping[str, Any]:
    services = wiring.services(wish.tenant)
    for left in range(TRIES, -1, -1):
        try:
            changed = _changed(services, wish)
            break
        except PreconditionFailed:
            # An event names no version: what it asks for holds for the cluster as it is by then.
            if not left:
                raise
    return {"cluster": changed.id, "operation_id": None, "status": changed.status}


def _changed(services: Services, wish: Wish) -> Cluster:
    cluster = find(services, wish.cluster)
    return change_cluster(
        services,
        cluster.id,
        cluster.version,
        description=wish.body.description if "description" in wish.body.model_fields_set else None,
        tags=wish.body.tags_after(cluster.tags),
        actor=wish.actor,
        request_id=wish.request_id,
    )


def _delete(wish: Wish) -> Mapping[str, Any]:
    services = wiring.services(wish.tenant)
    return _done(services, wish, "DeleteCluster", delete_cluster(services, wish.cluster, wish.actor))


DEEDS: Mapping[str, Deed] = {
    "CreateCluster": Deed("clusters:ClusterCreate", False, _create),
    "ChangeCluster": Deed("cluster_patch:ClusterPatch", True, _change),
    "DeleteCluster": Deed(None, True, _delete),
}
