"""The sweep of records: undo expired leases, retry blocked deletions, close operations whose workflow is lost."""

from __future__ import annotations

from datetime import timedelta

from stockyard.domain import times
from stockyard.domain.records import Cluster, Operation
from stockyard.lifecycle import cluster as lifecycle
from stockyard.lifecycle.operation import execution_name
from stockyard.operations.advance import WORKFLOW_ACTOR, Fence, commit
from stockyard.operations.fail_cluster import fail
from stockyard.operations.services import Services
from stockyard.operations.undo_acceptance import undo

NOTHING, UNDONE, RETRIED, CLOSED = "nothing", "undone", "retried", "closed"


def sweep_lease(services: Services, cluster: Cluster) -> str:
    """Undo a creation whose lease ran out before it was handed over, or finish an undo that was interrupted.

    ``cluster`` comes from an index and may be old: one that was taken over since is left alone.
    """
    return UNDONE if undo(services, cluster) else NOTHING


def sweep_cluster(services: Services, cluster_id: str) -> str:
    """Bring a cluster that nobody works on back to work. Says what was done."""
    cluster = services.store.get(Cluster, cluster_id)
    operation = services.store.get(Operation, cluster.operation_id) if cluster and cluster.operation_id else None
    if cluster is None or operation is None or operation.status != "running":
        return NOTHING
    age = services.clock.now() - times.from_text(operation.updated_at)
    name = execution_name(operation)
    stuck = age > timedelta(seconds=services.rules.stuck_seconds)
    if cluster.status == "deleting":
        blocked = operation.error is not None and age > timedelta(seconds=services.rules.retry_deletion_seconds)
        if blocked or (stuck and not services.workflows.running("delete", name)):
            commit(services, WORKFLOW_ACTOR, lifecycle.retry_deletion(cluster, operation, services.now()))
            return RETRIED
    elif cluster.status == "preparing" and stuck and not services.workflows.running("provision", name):
        fence = Fence(cluster.id, operation.id, cluster.attempt)
        fail(services, fence, {"Error": "ExecutionLost", "Cause": "The workflow ended without an answer."})
        return CLOSED
    return NOTHING
