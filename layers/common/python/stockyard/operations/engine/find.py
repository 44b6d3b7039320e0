"""Find what a caller names by id or by name."""

from __future__ import annotations

from stockyard.domain.records import UNSEEN, Cluster, Name, NodeClaim, Operation
from stockyard.domain.values import ids
from stockyard.errors import NotFound
from stockyard.lifecycle.change import S
from stockyard.operations.services import Services
from stockyard.ports import Store


def find_cluster(services: Services, id_or_name: str) -> Cluster:
    """The cluster by id or name. ``NotFound`` also for one that was not handed over or is another tenant's."""
    cluster = _find(services, Cluster, ids.CLUSTER, "cluster", id_or_name)
    if cluster is None or cluster.status in UNSEEN:
        raise NotFound(f"There is no cluster {id_or_name}.")
    return cluster


def find_claim(services: Services, id_or_name: str) -> NodeClaim:
    """The claim by id or name, else ``NotFound``."""
    claim = _find(services, NodeClaim, ids.NODE_CLAIM, "node-claim", id_or_name)
    if claim is None:
        raise NotFound(f"There is no node claim {id_or_name}.")
    return claim


def _find(services: Services, kind: type[S], prefix: str, noun: str, id_or_name: str) -> S | None:
    if id_or_name.startswith(f"{prefix}_"):
        return services.store.get(kind, id_or_name)
    name = services.store.get(Name, f"{noun}/{id_or_name}")
    return services.store.get(kind, name.owner) if name else None


def children_of(store: Store, operation: Operation) -> list[Operation]:
    """The child operations of an operation, the oldest first."""
    children = (store.get(Operation, child) for child in operation.children)
    return [child for child in children if child is not None]
