"""The dry runs of pools: what the first nodes of a pool would be, and cost; what a deletion gives back."""

from __future__ import annotations

from typing import Any

from stockyard.domain.pointers import pointer
from stockyard.domain.pool_limits import too_small
from stockyard.domain.pool_records import DYNAMIC, NewPool
from stockyard.domain.prices import PriceItem
from stockyard.domain.records import Cluster
from stockyard.lifecycle.pool import wanted_nodes
from stockyard.operations.node_claims.delete import price_items
from stockyard.operations.pools.claims import draft_claim
from stockyard.operations.pools.pools import check_deletion, check_pool, claims_of, draft, find_pool
from stockyard.operations.pricing import plan_of, removal_verdict
from stockyard.operations.scheduler.explain import cheapest, fitting_types
from stockyard.operations.services import Services


def plan_pool(services: Services, cluster: Cluster, new_pool: NewPool) -> dict[str, Any]:
    """The dry run of a creation: where each of the first nodes would be placed now, and at what price."""
    check_pool(services, cluster, new_pool)
    pool = draft(services, cluster.id, new_pool, "")
    claim = draft_claim(services, cluster.id, pool)
    warnings = limit_warnings(services, cluster, new_pool)
    if cluster.status != "ready":
        warnings.append(
            {"pointer": "", "detail": f"Cluster {cluster.name} is {cluster.status}: its pools wait for it."}
        )
    count = wanted_nodes(pool)
    for_pods = pool.kind == DYNAMIC and not count
    best, judged = cheapest(services, claim, "its nodes will wait", for_pods=for_pods, ahead=True)
    creates = [{"kind": "pool", "name": pool.name}]
    items: list[PriceItem] = []
    if best is not None:
        creates += [{"kind": "node", "name": best.node_type.name} for _ in range(count)]
        total = None if best.usd_hour is None else best.usd_hour * count
        items = [PriceItem(f"{best.node_type.name} ({best.capacity_type})", count, total)] if count else []
    else:
        warnings.append({"pointer": "", "detail": judged["verdict"]})
    return plan_of(items, creates=creates, warnings=warnings, **judged)


def limit_warnings(services: Services, cluster: Cluster, new_pool: NewPool) -> list[dict[str, str]]:
    """What to say of limits that are below the smallest node type that the pool may have."""
    if not new_pool.limits:
        return []
    types = fitting_types(services, draft_claim(services, cluster.id, draft(services, cluster.id, new_pool, "")))
    return [
        {"pointer": pointer("limits", *([name] if name else [])), "detail": words}
        for name, words in too_small(new_pool.limits, types)
    ]


def plan_deletion(services: Services, cluster: Cluster, name: str) -> dict[str, Any]:
    """The dry run of a deletion: every node of the pool, and the price that ends."""
    pool = find_pool(services, cluster, name)
    check_deletion(cluster, pool)
    claims = claims_of(services, cluster.id, pool.name)
    deletes = [{"kind": "node-claim", "name": claim.name} for claim in claims]
    items = [item for claim in claims for item in price_items(claim)]
    deletes.append({"kind": "pool", "name": pool.name})
    return plan_of(items, verdict=removal_verdict(len(deletes), "", items), deletes=deletes)
