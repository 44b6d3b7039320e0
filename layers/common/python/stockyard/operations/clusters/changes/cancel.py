"""Stop an operation that changes a ready cluster, between two of its steps."""

from __future__ import annotations

from stockyard.domain.records import Cluster, Operation, OperationError
from stockyard.errors import IllegalTransition, NotFound
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.operations.clusters.changes.queue import ended_writes
from stockyard.operations.clusters.changes.reconfigure import current_operation
from stockyard.operations.engine.advance import commit, until_written
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.services import Services


@until_written("cluster changes too often for its operation to be stopped")
def cancel_change(services: Services, id_or_name: str, actor: str) -> Cluster:
    """The cluster, ready and degraded: the operation is cancelled and can be resumed, or another one follows it.

    The workflow ends with its next step, which finds that the operation is over; what its last one does until then is
    a part of what is wanted. ``IllegalTransition`` where no change is at work.
    """
    cluster = find_cluster(services, id_or_name)
    operation = current_operation(services, cluster)
    if operation is None:
        raise IllegalTransition("Nothing is at work on the cluster.")
    procedure = services.procedure(operation.kind, cluster.driver)
    return commit(services, actor, MOVES.cancel(cluster, operation, procedure, actor, services.now()))


@until_written("cluster changes too often for its queue to be changed")
def cancel_queued(services: Services, id_or_name: str, operation_id: str, actor: str) -> Operation:
    """The operation, which will not begin; others behind it move up. ``IllegalTransition`` for one that has begun."""
    cluster = find_cluster(services, id_or_name)
    operation = services.store.get(Operation, operation_id)
    if operation is None or operation.subject != cluster.id:
        raise NotFound(f"Cluster {cluster.name} has no operation {operation_id}.")
    if operation_id not in cluster.queue:
        raise IllegalTransition(f"Operation {operation_id} is {operation.status}; it does not wait for its turn.")
    cause = f"Stopped by {actor} before it began."
    error = OperationError("ClusterCouldNotBeChanged", "checks", cause, "Send the change again.", "Cancelled")
    services.store.commit(*ended_writes(services, cluster, operation, error, actor, "cancelled"))
    stopped = services.store.get(Operation, operation_id)
    return operation if stopped is None else stopped
