"""The claims of a cluster, by the entries that are written with them."""

from __future__ import annotations

from stockyard.domain.pools.records import ClusterClaim, entry_id
from stockyard.domain.records import NodeClaim
from stockyard.operations.listing import every
from stockyard.operations.services import Services
from stockyard.ports import Page


def claims_of(
    services: Services, cluster_id: str, pool: str | None = None, *, consistent: bool = True
) -> list[NodeClaim]:
    """The claims of a cluster, or of one of its pools; those on their way out too. What is not ``consistent`` may be a
    second old, and costs half."""
    prefix = f"{cluster_id}/" if pool is None else entry_id(cluster_id, pool)
    entries = every(services.store, ClusterClaim, prefix=prefix, consistent=consistent)
    names = [entry.claim_id for entry in entries]
    return list(services.store.get_all(NodeClaim, names, consistent=consistent))


def page_of(
    services: Services,
    cluster_id: str,
    pool: str | None,
    after: str | None,
    limit: int,
    *,
    newest_first: bool = False,
    consistent: bool = True,
) -> Page[NodeClaim]:
    """At most ``limit`` claims of a cluster, or of one of its pools, behind ``after`` in order of id. Of all its claims
    the entries alone are read. What is not ``consistent`` may be a second old, and costs half."""
    prefix = f"{cluster_id}/" if pool is None else entry_id(cluster_id, pool)
    entries = every(services.store, ClusterClaim, prefix=prefix, consistent=consistent)
    names = sorted((entry.claim_id for entry in entries), reverse=newest_first)
    if after is not None:
        names = [name for name in names if (name < after if newest_first else name > after)]
    claims = services.store.get_all(NodeClaim, names[:limit], consistent=consistent)
    return Page(list(claims), names[limit - 1] if len(names) > limit else None)


def all_claims_of(services: Services, cluster_id: str, *, consistent: bool = True) -> list[NodeClaim]:
    """Every claim that was made for the cluster. When no entry is left all claims of the tenant are read: those of
    earlier releases have none."""
    claims = claims_of(services, cluster_id, consistent=consistent)
    return claims or list(every(services.store, NodeClaim, where={"cluster_id": cluster_id}, consistent=consistent))
