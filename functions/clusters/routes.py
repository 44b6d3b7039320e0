"""Router and answers that the routes of clusters share."""

from __future__ import annotations

from typing import Any

from stockyard import wiring
from stockyard.domain.records import Cluster, Operation
from stockyard.domain.views import cluster_view, operation_view
from stockyard.edge.contract import Answer
from stockyard.errors import UnexpectedBehavior
from stockyard.lifecycle.operation import progress
from stockyard.operations.services import Services

http = wiring.http("clusters")


def cluster_answer(cluster: Cluster, status: int, **settings: Any) -> Answer:
    """The cluster as an answer; ``settings`` are more of an :class:`Answer`."""
    return Answer(status, cluster_view(cluster), version=cluster.version, **settings)


def operation_answer(services: Services, cluster: Cluster) -> Answer:
    """The operation that the cluster has begun, as a 202."""
    operation = services.store.get(Operation, cluster.operation_id or "")
    if operation is None:
        raise UnexpectedBehavior("The operation is not readable just now; the cluster names it.")
    return Answer.accepted(operation_view(operation, progress(operation)), operation.id, subject=cluster.id)
