"""Delete a cluster: in every state, once; a second request points to the same operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stockyard.domain.clusters.snapshots import SETTING
from stockyard.domain.records import UNSEEN, Cluster, Operation, OperationError
from stockyard.domain.values import ids, times
from stockyard.errors import InUse
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.operation import new_operation
from stockyard.lifecycle.phases import DELETE_CLUSTER
from stockyard.operations.cloud_accounts.of_provider import users_of_cluster
from stockyard.operations.engine.advance import WORKFLOW_ACTOR, change_writes, until_written
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.engine.ledger import lines_of, locations, planned_removals
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace, Write

PROTECTION = "deletion_protection"
"""The setting by which the cloud refuses to delete a cluster. Every deletion of ours takes the protection away."""


@until_written("cluster changes too often to be deleted")
def delete_cluster(services: Services, id_or_name: str, actor: str) -> Cluster:
    """The cluster in status ``deleting``. ``NotFound`` when there is none.

    A deletion that is blocked is tried again at once, of its nodes too: who asks again has mended the cause.
    """
    cluster = find_cluster(services, id_or_name)
    if cluster.status == "deleting":
        from stockyard.operations.clusters.changes.resume import resume_cluster
        from stockyard.operations.clusters.nodes import claims_of
        from stockyard.operations.node_claims.delete import delete_claim

        current = services.store.get(Operation, cluster.operation_id) if cluster.operation_id else None
        for claim in claims_of(services, cluster):
            if claim.deleting:
                delete_claim(services, claim.id, actor)
        is_blocked = current is not None and current.error is not None
        return resume_cluster(services, cluster.id, actor) if is_blocked else cluster
    return _begin(services, cluster, actor)


@until_written("cluster changes too often to be deleted")
def delete_expired(services: Services, cluster_id: str) -> bool:
    """Whether the deletion of a cluster has begun whose time has come. Nothing happens to one that somebody has given
    more time just now, nor to one that makes the machines of node providers: whoever removes those lets it go."""
    cluster = services.store.get(Cluster, cluster_id)
    if cluster is None or cluster.expires_at is None or cluster.status in {"deleting", *UNSEEN}:
        return False
    if times.from_text(cluster.expires_at) > services.clock.now():
        return False
    detail = f"Its time ended at {cluster.expires_at}."
    if cluster.settings.get(PROTECTION):
        detail += f" Its {PROTECTION} is taken away."
    if users_of_cluster(services, cluster):
        return False
    audit = services.audit_record(WORKFLOW_ACTOR, "DeleteCluster", cluster.id, "", detail)
    expired = Transition("Cluster", cluster.status, cluster.status, "Expired", detail)
    _begin(services, cluster, WORKFLOW_ACTOR, [expired], [Create(audit)])
    return True


def _begin(
    services: Services,
    cluster: Cluster,
    actor: str,
    before: Sequence[Transition] = (),
    writes_beside: Sequence[Write] = (),
) -> Cluster:
    """The cluster, whose deletion has begun; ``before`` is told first."""
    check_hosts_nothing(services, cluster)
    current = services.store.get(Operation, cluster.operation_id) if cluster.operation_id else None
    now = services.now()
    procedure = services.procedure(DELETE_CLUSTER, cluster.driver)
    operation = new_operation(services.new_id(ids.OPERATION), procedure, cluster, actor, now)
    overtaken = (current, services.procedure(current.kind, cluster.driver)) if current is not None else None
    change = MOVES.start_deletion(cluster, overtaken, operation, procedure, now)
    change = replace(change, transitions=(*before, *change.transitions))
    moved, operation_record, writes = change_writes(services, actor, change)
    moved = replace(moved, queue=())
    queue_ends = _unqueued(services, cluster, actor)
    services.store.commit(Replace(moved), Create(operation_record), *writes, *queue_ends, *writes_beside)
    return moved


def check_hosts_nothing(services: Services, cluster: Cluster) -> None:
    """``InUse`` while node providers have their machines made by the cluster; it names them."""
    users = ", ".join(provider.name for provider in users_of_cluster(services, cluster))
    if users:
        raise InUse(f"Cluster {cluster.name} makes the machines of node providers {users}.")


def _unqueued(services: Services, cluster: Cluster, actor: str) -> list[Write]:
    """The ends of the changes that waited for their turn."""
    if not cluster.queue:
        return []
    from stockyard.operations.clusters.changes.queue import closed_writes

    error = OperationError("ClusterCouldNotBeChanged", "checks", "The cluster was deleted before it began.", "")
    waiting = [operation for name in cluster.queue if (operation := services.store.get(Operation, name)) is not None]
    return [write for operation in waiting for write in closed_writes(services, operation, error, actor)]


def plan_deletion(services: Services, id_or_name: str) -> dict[str, Any]:
    """The dry run: everything on the ledger, the client, the node claims, and the price that ends."""
    from stockyard.operations.clusters.nodes import claims_of
    from stockyard.operations.costs.parts import price_items
    from stockyard.operations.node_claims import delete as delete_claim
    from stockyard.operations.pricing import plan_of, removal_verdict

    cluster = find_cluster(services, id_or_name)
    check_hosts_nothing(services, cluster)
    lines = lines_of(services, cluster.id)
    deletes = planned_removals(lines)
    deletes.append({"kind": "keycloak client", "name": cluster.client_id})
    claims = claims_of(services, cluster)
    deletes += [{"kind": "node-claim", "name": claim.name} for claim in claims]
    # members of the control plane are items of the cluster
    workers = [claim for claim in claims if not claim.control_plane]
    nodes = [item for claim in workers for item in delete_claim.price_items(claim)]
    driver = services.cluster_drivers.get(cluster.driver)
    keeper = driver.snapshot_keeper if driver is not None else None
    kept_things = keeper.kept_snapshots(cluster) if keeper is not None else ()
    warnings = [{"pointer": f"/settings/{SETTING}/on_deletion", "detail": f"Stays: {text}."} for text in kept_things]
    if cluster.settings.get(PROTECTION):
        text = "The protection is taken away before the cluster is deleted."
        warnings.append({"pointer": f"/settings/{PROTECTION}", "detail": text})
    items = [*price_items(services, cluster), *nodes]
    verdict = removal_verdict(len(deletes), locations(lines), items)
    return plan_of(items, verdict=verdict, deletes=deletes, warnings=warnings)
