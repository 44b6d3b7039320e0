"""The dry runs of pools: what the first nodes of a pool would be, and cost; what a deletion gives back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stockyard.domain.month_budgets import Scope, usd_month_of
from stockyard.domain.nodes.node_types import offering_text
from stockyard.domain.pools.limits import too_small
from stockyard.domain.pools.records import DYNAMIC, NewPool, Pool
from stockyard.domain.records import Cluster
from stockyard.domain.values.pointers import pointer
from stockyard.domain.values.prices import PriceItem
from stockyard.errors import QuotaExceeded
from stockyard.lifecycle.pools.pool import living, wanted_nodes
from stockyard.operations.costs.plan_notes import budget_warnings, known_hour
from stockyard.operations.fleet.explain import cheapest, egress_warnings, fitting_types
from stockyard.operations.fleet.pools.claims import draft_claim
from stockyard.operations.fleet.pools.pools import (
    check_deletion,
    check_pool,
    claims_of,
    draft,
    find_pool,
    pools_of,
    resources_of,
)
from stockyard.operations.fleet.state import workload_of
from stockyard.operations.node_claims.delete import price_items
from stockyard.operations.node_providers.catalog import load
from stockyard.operations.node_providers.run_costs import run_notes
from stockyard.operations.pricing import plan_of, removal_verdict
from stockyard.operations.services import Services

if TYPE_CHECKING:
    from stockyard.scheduling.packing.plan import Claim

DEADLINE_SECONDS = 15
"""After so many seconds the plan for pods that wait ends with what it has: a request has 29 seconds."""


def plan_pool(services: Services, cluster: Cluster, new_pool: NewPool) -> dict[str, Any]:
    """The dry run of a creation: where each of the first nodes would be placed now, and at what price."""
    check_pool(services, cluster, new_pool)
    pool = draft(services, cluster.id, new_pool, "")
    claim = draft_claim(services, cluster.id, pool)
    warnings = limit_warnings(services, cluster, new_pool)
    if cluster.status not in ("accepting", "ready"):
        warnings.append(
            {"pointer": "", "detail": f"Cluster {cluster.name} is {cluster.status}: its pools wait for it."}
        )
    count = wanted_nodes(pool)
    for_pods = pool.kind == DYNAMIC and not count
    best, judged = cheapest(services, claim, "its nodes will wait", for_pods=for_pods, ahead=True, draft=cluster)
    creates = [{"kind": "pool", "name": pool.name}]
    items: list[PriceItem] = []
    if best is not None:
        creates += [{"kind": "node", "name": best.node_type.name} for _ in range(count)]
        total = None if best.usd_hour is None else best.usd_hour * count
        offering_words = offering_text(best.node_type, best.capacity_type)
        items = [PriceItem(f"{best.node_type.name} ({offering_words})", count, total)] if count else []
    else:
        warnings.append({"pointer": "", "detail": judged["verdict"]})
        # What nodes cost that nothing is known of, nobody knows.
        items = [PriceItem(f"{'1 node' if count == 1 else f'{count} nodes'} of pool {pool.name}", count, None)]
        items = items if count else []
    planned = _for_pods(services, cluster, pool) if pool.kind == DYNAMIC and cluster.status == "ready" else ()
    if planned:
        creates += [{"kind": "node", "name": node.row.node_type.name} for node in planned]
        items += _price_items(planned)
        pods = sum(len(node.pods) for node in planned)
        judged["verdict"] += f" {pods} pods that wait now get {len(planned)} nodes of it."
    own = {Scope(cluster.id, pool.name): usd_month_of(pool.limits)}
    warnings += budget_warnings(services, cluster.id, pool.name, known_hour(items), own)
    warnings += egress_warnings(services, claim, best)
    if best is not None:
        provider = load(services).providers.get(best.node_type.provider)
        warnings += run_notes(services, provider, best.node_type, "each node")
    return plan_of(items, creates=creates, warnings=warnings, **judged)


def change_warnings(services: Services, cluster: Cluster, pool: Pool, changed: NewPool) -> list[dict[str, Any]]:
    """Warnings of a change of a pool: nodes that it adds may have no room in budgets, and a budget that it sets may be
    reached at once."""
    more = wanted_nodes(replace(pool, kind=changed.kind, quantity=changed.quantity, floor=changed.floor))
    more -= max(wanted_nodes(pool), len(living(claims_of(services, cluster.id, pool.name))))
    price = 0.0
    if more > 0:
        best, _ = cheapest(services, draft_claim(services, cluster.id, replace(pool, **changed.spec())), "", ahead=True)
        price = best.usd_hour or 0.0 if best is not None else 0.0
    usd, earlier = usd_month_of(changed.limits), usd_month_of(pool.limits)
    own = {Scope(cluster.id, pool.name): usd} if usd != earlier else {}
    return budget_warnings(services, cluster.id, pool.name, max(0, more) * price, own)


def _for_pods(services: Services, cluster: Cluster, pool: Pool) -> Sequence[Claim]:
    """The nodes of the pool that the pods which wait now would get, beside the nodes that the cluster has. A floor is
    left out: its nodes are planned already, and where it has one, the pods may fit on them."""
    workload = workload_of(services, cluster.id)
    if workload is None or not workload.pending or wanted_nodes(pool):
        return ()
    # The packer is loaded only where something waits.
    from stockyard.operations.fleet.pools.scale_up import plan_of as nodes_for_pods

    pools = [*pools_of(services, cluster.id), pool]
    claims = claims_of(services, cluster.id)
    try:
        plan = nodes_for_pods(services, cluster, pools, claims, workload, seconds=DEADLINE_SECONDS)
    except QuotaExceeded:
        return ()
    return [claim for claim in plan.claims if claim.pool.name == pool.name]


def _price_items(planned: Sequence[Claim]) -> list[PriceItem]:
    """A line of the bill for each kind of node."""
    from stockyard.scheduling.packing.rows import UNKNOWN_PRICE

    rows = [node.row for node in planned]
    counts = Counter(
        (row.node_type.name, offering_text(row.node_type, row.capacity_type), row.usd_hour) for row in rows
    )
    return [
        PriceItem(f"{name} ({offering_words})", count, None if price >= UNKNOWN_PRICE else price * count)
        for (name, offering_words, price), count in sorted(counts.items())
    ]


def limit_warnings(services: Services, cluster: Cluster, new_pool: NewPool) -> list[dict[str, str]]:
    """Warnings about limits below the smallest node type of the pool, and about limits of a resource that no node type
    has yet."""
    if not new_pool.limits:
        return []
    unused = [name for name in new_pool.limits if "/" in name]
    resources = resources_of(services) if unused else set()
    texts = [(name, f"No node type has {name} now: it limits nothing.") for name in unused if name not in resources]
    pool = draft(services, cluster.id, new_pool, "")
    types = fitting_types(services, cluster, draft_claim(services, cluster.id, pool))
    return [
        {"pointer": pointer("limits", *([name] if name else [])), "detail": words}
        for name, words in (*texts, *too_small(new_pool.limits, types))
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
