"""Stop an operation that changes a ready cluster, between two of its steps."""

from __future__ import annotations

from stockyard.domain.records import Cluster
from stockyard.errors import IllegalTransition
from stockyard.lifecycle.cluster import MOVES
from stockyard.operations.clusters.reconfigure import current_operation
from stockyard.operations.engine.advance import commit, until_written
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.services import Services


@until_written("cluster changes too often for its operation to be stopped")
def cancel_change(services: Services, id_or_name: str, actor: str) -> Cluster:
    """The cluster, ready and degraded: the operation has failed and can be resumed, or another one follows it.

    The workflow ends with its next step, which finds that the operation is over; what its last one does until then is
    a part of what is wanted. ``IllegalTransition`` where no change is at work.
    """
    cluster = find_cluster(services, id_or_name)
    operation = current_operation(services, cluster)
    if operation is None:
        raise IllegalTransition("Nothing is at work on the cluster.")
    procedure = services.procedure(operation.kind, cluster.driver)
    return commit(services, actor, MOVES.cancel(cluster, operation, procedure, actor, services.now()))
