"""Changes that wait for their turn: one operation works on a cluster at a time, and others may stand behind it.

A queued change is an operation in status ``queued`` and its merge patch; the cluster names it. Its turn comes when
the operation before it has ended well: then its patch is read against the cluster of that moment, with every check of
a request. While a cluster is degraded its queue waits, so that what has failed can be resumed first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from stockyard.domain.profiles.pack_rights import RIGHTS
from stockyard.domain.records import Cluster, Operation, OperationError
from stockyard.domain.values import ids
from stockyard.domain.values.rights import OPERATOR
from stockyard.domain.values.states import OperationStatus
from stockyard.errors import CallerError, Conflict, IllegalTransition, PreconditionFailed
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.change_phases import CHANGE_CLUSTER
from stockyard.lifecycle.phases import DEGRADED
from stockyard.operations.clusters.changes.change import change_cluster
from stockyard.operations.clusters.changes.reconfigure import current_operation
from stockyard.operations.engine.advance import WORKFLOW_ACTOR, until_written
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.engine.tell import tell
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace, Write

MOST = 10
"""Changes that may wait for one cluster."""
QUEUED: Final = "queued"


def is_busy(services: Services, cluster: Cluster) -> bool:
    """Whether a change would have to wait: something works on the cluster, or others stand before it."""
    current = current_operation(services, cluster)
    return bool(cluster.queue) or (current is not None and current.status == "running")


@until_written("cluster changes too often for a change to be queued")
def enqueue(
    services: Services,
    id_or_name: str,
    patch: Mapping[str, Any],
    actor: str,
    request_id: str,
    *,
    rights: str = OPERATOR,
) -> Operation:
    """The queued operation of a merge patch of somebody who has these ``rights`` over packs, see ``pack_rights``.
    ``IllegalTransition`` unless the cluster is ready and has room for it."""
    cluster = find_cluster(services, id_or_name)
    if cluster.status != "ready":
        raise IllegalTransition(f"The cluster is {cluster.status}; only a ready one can be changed.")
    if len(cluster.queue) >= MOST:
        raise IllegalTransition(
            f"{MOST} changes wait for the cluster already, the first of them is {cluster.queue[0]}."
        )
    now = services.now()
    operation = Operation(
        services.new_id(ids.OPERATION), CHANGE_CLUSTER, cluster.id, QUEUED, (), now, now, actor, cluster.name
    )
    if "profiles" in patch:
        patch = {**patch, RIGHTS: rights}
    operation = replace(operation, sequence=1, request=dict(patch))
    text = f"It begins when {cluster.queue[-1] if cluster.queue else cluster.operation_id} has ended."
    audit = services.audit_record(actor, "QueueChange", cluster.id, request_id, f"Queued as {operation.id}.")
    queued = Transition("Operation", None, QUEUED, "Queued", text)
    longer: Cluster = replace(
        cluster, queue=(*cluster.queue, operation.id), updated_at=now, version=cluster.version + 1
    )
    services.store.commit(Replace(longer), Create(operation), Create(audit), *tell(services, actor, operation, queued))
    return operation


def begin_next(services: Services, cluster_id: str) -> bool:
    """Begin the first change of the queue whose turn it is. True when one has begun.

    One that cannot be done any more ends with the reason, and the next one has its turn.
    """
    for _ in range(MOST):
        cluster = services.store.get(Cluster, cluster_id)
        if cluster is None or not _may_begin(services, cluster):
            return False
        operation = services.store.get(Operation, cluster.queue[0])
        if operation is None:
            return False
        try:
            changed = _read_and_begin(services, cluster, operation)
        except (Conflict, PreconditionFailed):
            return False  # Another worker was first, or somebody has changed the cluster just now.
        except CallerError as refusal:
            latest = services.store.get(Cluster, cluster.id)
            if latest is None or latest.version != cluster.version:
                return False
            _give_up(services, cluster, operation, refusal)
        else:
            if changed.operation_id == operation.id:
                return True
    return False


def _may_begin(services: Services, cluster: Cluster) -> bool:
    degraded = any(part.type == DEGRADED and part.status == "True" for part in cluster.conditions)
    return bool(cluster.queue) and cluster.status == "ready" and not degraded and not _is_running(services, cluster)


def _is_running(services: Services, cluster: Cluster) -> bool:
    current = current_operation(services, cluster)
    return current is not None and current.status == "running"


def _read_and_begin(services: Services, cluster: Cluster, operation: Operation) -> Cluster:
    from stockyard.domain.models.base import read  # loads pydantic: only where a change has waited
    from stockyard.domain.models.clusters.patch import ClusterPatch
    from stockyard.operations.clusters.changes.alignment import aligned

    patch = read(ClusterPatch, {name: value for name, value in operation.request.items() if name != RIGHTS})
    rights = operation.request.get(RIGHTS) or OPERATOR
    change = replace(patch.change_of(aligned(services, cluster)), rights=rights)
    changed, _ = change_cluster(
        services,
        cluster.id,
        cluster.version,
        change,
        actor=operation.actor,
        request_id=operation.id,
        queued=operation,
    )
    return changed


def _give_up(services: Services, cluster: Cluster, operation: Operation, refusal: CallerError) -> None:
    hint = "Send the change again if it is still wanted."
    error = OperationError("ClusterCouldNotBeChanged", "checks", refusal.detail, hint, refusal.error_type)
    services.store.commit(*ended_writes(services, cluster, operation, error, WORKFLOW_ACTOR))


def ended_writes(
    services: Services,
    cluster: Cluster,
    operation: Operation,
    error: OperationError,
    actor: str,
    status: OperationStatus = "failed",
) -> list[Write]:
    """The end of an operation that never began, as ``status``, and the cluster without it."""
    now = services.now()
    shorter_queue = tuple(waiting for waiting in cluster.queue if waiting != operation.id)
    shorter: Cluster = replace(cluster, queue=shorter_queue, updated_at=now, version=cluster.version + 1)
    return [Replace(shorter), *closed_writes(services, operation, error, actor, status)]


def closed_writes(
    services: Services, operation: Operation, error: OperationError, actor: str, status: OperationStatus = "failed"
) -> list[Write]:
    """The end of an operation that never began, as ``status``."""
    over = replace(
        operation,
        status=status,
        error=error,
        updated_at=services.now(),
        version=operation.version + 1,
        sequence=operation.sequence + 1,
    )
    text = Transition("Operation", QUEUED, status, error.cause_type or error.error_type, error.cause)
    return [Replace(over), *tell(services, actor, over, text)]
