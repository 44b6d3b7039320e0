"""Begin an operation that changes a ready cluster while it goes on serving."""

from __future__ import annotations

from stockyard.domain.records import Operation
from stockyard.domain.values import ids
from stockyard.errors import IllegalTransition
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.operation import new_operation, with_child
from stockyard.operations.engine.advance import change_writes, until_written
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace, Write


@until_written("cluster changes too often to be changed")
def start_change(services: Services, id_or_name: str, kind: str, actor: str, parent_id: str = "") -> Operation:
    """The running operation of this kind, as a part of the operation ``parent_id`` where that is given.

    Raises ``NotFound``; ``IllegalTransition`` unless the cluster is ready, nothing else works on it, and the parent
    still runs.
    """
    cluster, now = find_cluster(services, id_or_name), services.now()
    current = services.store.get(Operation, cluster.operation_id) if cluster.operation_id else None
    procedure = services.procedure(kind, cluster.driver)
    operation = new_operation(services.new_id(ids.OPERATION), procedure, cluster, actor, now, parent_id)
    change = MOVES.start_change(cluster, current, operation, procedure, now)
    changed, started_operation, writes = change_writes(services, actor, change)
    family: list[Write] = []
    if parent_id:
        parent = services.store.get(Operation, parent_id)
        if parent is None or parent.status != "running":
            raise IllegalTransition(f"Operation {parent_id} does not run; nothing can become a part of it.")
        family = [Replace(with_child(parent, started_operation.id, now))]
    services.store.commit(Replace(changed), Create(started_operation), *family, *writes)
    return started_operation
