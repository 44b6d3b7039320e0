"""Change what may change of a cluster: description, tags, and the settings that are no machine's.

Tags are on the record at once. What stands in the cloud gets them in the background: by an operation that begins with
the change, or, while another one works on the cluster, by that one or after it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stockyard.domain import ids
from stockyard.domain.records import Cluster, Operation
from stockyard.errors import Conflict, IllegalTransition, PreconditionFailed
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.cluster import MOVES
from stockyard.lifecycle.operation import new_operation
from stockyard.lifecycle.phases import RETAG_CLUSTER
from stockyard.operations.engine.advance import change_writes
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.engine.tell import tell
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace, Write


def change_cluster(
    services: Services,
    id_or_name: str,
    version: int,
    *,
    description: str | None,
    tags: dict[str, str] | None,
    settings: dict[str, Any] | None = None,
    actor: str,
    request_id: str,
) -> Cluster:
    """The changed cluster. None leaves a field as it is. Of tags, ``operation_id`` is the operation that puts them on
    what is there, where that could begin at once.

    ``PreconditionFailed`` unless the cluster stands at ``version``; ``IllegalTransition`` when it is being deleted.
    """
    cluster = find_cluster(services, id_or_name)
    if cluster.version != version:
        raise PreconditionFailed(f"The cluster is at version {cluster.version}, not {version}.")
    if cluster.status == "deleting":
        raise IllegalTransition("The cluster is being deleted.")
    given_fields = {"description": description, "tags": tags, "settings": settings}
    message = f"Changed: {', '.join(name for name, value in given_fields.items() if value is not None) or 'nothing'}."
    audit = services.audit_record(actor, "ChangeCluster", cluster.id, request_id, message)
    changed = cluster if description is None else replace(cluster, description=description)
    changed = changed if settings is None else replace(changed, settings=settings)
    if tags is not None:
        changed = MOVES.change_tags(changed, tags, services.now())
    transition = Transition("Cluster", cluster.status, cluster.status, "Changed", message)
    if tags is None or not _may_start(services, cluster):
        changed = MOVES.touch(changed, services.now(), sequence=cluster.sequence + 1)
        writes = tell(services, actor, changed, transition)
    else:
        changed, writes = _started(services, actor, changed, transition)
    try:
        services.store.commit(Replace(changed), Create(audit), *writes)
    except Conflict as conflict:
        raise PreconditionFailed("The cluster was changed by someone else just now.") from conflict
    return changed


def _may_start(services: Services, cluster: Cluster) -> bool:
    current = services.store.get(Operation, cluster.operation_id) if cluster.operation_id else None
    return cluster.status == "ready" and (current is None or current.status != "running")


def _started(services: Services, actor: str, changed: Cluster, transition: Transition) -> tuple[Cluster, list[Write]]:
    """The cluster with the operation that puts its tags on what is there, and what is written with it."""
    procedure = services.procedure(RETAG_CLUSTER, changed.driver)
    operation = new_operation(services.new_id(ids.OPERATION), procedure, changed.id, actor, services.now())
    change = MOVES.start_change(changed, None, operation, procedure, services.now())
    change = replace(change, transitions=(transition, *change.transitions))
    started_cluster, started_operation, writes = change_writes(services, actor, change)
    return started_cluster, [Create(started_operation), *writes]
