"""The claims of a cluster, by the entries that are written with them."""

from __future__ import annotations

from stockyard.domain.pools.records import ClusterClaim, entry_id
from stockyard.domain.records import NodeClaim
from stockyard.operations.listing import every
from stockyard.operations.services import Services


def claims_of(services: Services, cluster_id: str, pool: str | None = None) -> list[NodeClaim]:
    """The claims of a cluster, or of one of its pools, read consistently; those on their way out too."""
    prefix = f"{cluster_id}/" if pool is None else entry_id(cluster_id, pool)
    entries = every(services.store, ClusterClaim, prefix=prefix)
    return list(services.store.get_all(NodeClaim, [entry.claim_id for entry in entries]))


def all_claims_of(services: Services, cluster_id: str) -> list[NodeClaim]:
    """Every claim that was made for the cluster. When no entry is left all claims of the tenant are read: those of
    earlier releases have none."""
    return claims_of(services, cluster_id) or list(every(services.store, NodeClaim, where={"cluster_id": cluster_id}))
