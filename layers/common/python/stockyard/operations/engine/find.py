"""Find what a caller names by id or by name."""

from __future__ import annotations

from stockyard.domain import ids
from stockyard.domain.records import UNSEEN, Cluster, Name, NodeClaim, Operation
from stockyard.errors import NotFound
from stockyard.operations.services import Services
from stockyard.ports import Store


def find_cluster(services: Services, id_or_name: str) -> Cluster:
    """The cluster by id or name. ``NotFound`` also for one that was not handed over or is another tenant's."""
    cluster_id = id_or_name
    if not id_or_name.startswith("clu_"):
        name = services.store.get(Name, f"cluster/{id_or_name}")
        cluster_id = name.owner if name else ""
    cluster = services.store.get(Cluster, cluster_id) if cluster_id else None
    if cluster is None or cluster.status in UNSEEN:
        raise NotFound(f"There is no cluster {id_or_name}.")
    return cluster


def children_of(store: Store, operation: Operation) -> list[Operation]:
    """The operations that are parts of this one, in the order in which they were begun."""
    children = (store.get(Operation, child) for child in operation.children)
    return [child for child in children if child is not None]


def find_claim(services: Services, id_or_name: str) -> NodeClaim:
    """The claim by id or name, else ``NotFound``."""
    claim_id = id_or_name
    if not id_or_name.startswith(f"{ids.NODE_CLAIM}_"):
        name = services.store.get(Name, f"node-claim/{id_or_name}")
        claim_id = name.owner if name else ""
    claim = services.store.get(NodeClaim, claim_id) if claim_id else None
    if claim is None:
        raise NotFound(f"There is no node claim {id_or_name}.")
    return claim
