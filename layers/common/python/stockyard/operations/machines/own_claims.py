"""Rights of a cluster's own client: claims of its cluster, and nothing else of the tenant."""

from __future__ import annotations

from stockyard.domain.records import Cluster, Name, NodeClaim
from stockyard.errors import InvalidInput, NotFound
from stockyard.operations.engine.find import find_claim
from stockyard.operations.listing import every
from stockyard.operations.services import Services


def cluster_of(services: Services, client_id: str | None) -> Cluster:
    """The cluster whose own client this is. ``NotFound`` when it is none's."""
    cluster = None
    if client_id:
        # A client has its cluster's name in front, unless that was cut.
        name = services.store.get(Name, f"cluster/{client_id.rpartition('-')[0]}")
        cluster = services.store.get(Cluster, name.owner) if name is not None else None
        if cluster is None or cluster.client_id != client_id:
            cluster = next(every(services.store, Cluster, where={"client_id": client_id}), None)
    if cluster is None:
        raise NotFound("This client is not the one of a cluster.")
    return cluster


def belongs(claim: NodeClaim, cluster: Cluster) -> bool:
    """Whether the claim is for the cluster, also while it only names it."""
    if claim.cluster_id:
        return claim.cluster_id == cluster.id
    return claim.cluster_ref in (cluster.id, cluster.name)


def own_claim(services: Services, cluster: Cluster, id_or_name: str) -> NodeClaim:
    """The claim by id or name, if it is the cluster's; else ``NotFound``, as for one that is not there."""
    claim = find_claim(services, id_or_name)
    if not belongs(claim, cluster):
        raise NotFound(f"There is no node claim {id_or_name}.")
    return claim


def check_named(cluster: Cluster, named: str) -> None:
    """``InvalidInput`` unless a new claim names this cluster, as for one that is not there."""
    if named not in (cluster.id, cluster.name):
        raise InvalidInput.at("/cluster", f"There is no cluster {named}.")
