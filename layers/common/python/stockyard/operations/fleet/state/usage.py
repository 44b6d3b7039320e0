"""Use of a cluster's nodes: what the pods on each ask for, of what it has for pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stockyard.domain.nodes.records import NodeClaim
from stockyard.domain.values.quantities import resource_text
from stockyard.operations.fleet.state.reported import Quantities
from stockyard.operations.fleet.state.workload import Workload

Amounts = Mapping[str, int]
"""Thousandths of a unit by resource."""
_PODS = "pods"


def usage_view(cluster_id: str, claims: Iterable[NodeClaim], workload: Workload | None) -> dict[str, Any]:
    """The answer as a ``ClusterUsageView`` document; without nodes where no agent has told of the cluster. A node that
    its cluster does not report is not among them."""
    rows = list(_rows(claims, workload)) if workload is not None else []
    pools = sorted({claim.pool for claim, _, _ in rows})
    return {
        "cluster_id": cluster_id,
        "observed_at": workload.observed_at if workload is not None else None,
        "nodes": [
            {
                "name": claim.node_name,
                "claim_id": claim.id,
                "pool": claim.pool or None,
                **_share(has, requested),
            }
            for claim, has, requested in rows
        ],
        "pools": [_sum(pool, [row for row in rows if row[0].pool == pool]) for pool in pools],
    }


def _rows(claims: Iterable[NodeClaim], workload: Workload) -> Iterable[tuple[NodeClaim, Amounts, Amounts]]:
    quantities = Quantities()
    for claim in sorted(claims, key=lambda claim: claim.node_name):
        facts = workload.facts_of(claim)
        if claim.node_name and facts is not None and facts.allocatable:
            has = {name: amount for name, amount in quantities.of(facts.allocatable).items() if amount > 0}
            yield claim, has, _requested(claim.node_name, workload)


def _requested(name: str, workload: Workload) -> Amounts:
    """Requests of the pods that run on the node or were sent to it, and their number."""
    sums: defaultdict[str, int] = defaultdict(int)
    for pod, count in (*workload.running.get(name, ()), *workload.nominated.get(name, ())):
        for resource, amount in pod.requests:
            sums[resource] += amount * count if resource != _PODS else 0
        sums[_PODS] += 1000 * count
    return sums


def _sum(pool: str, rows: Sequence[tuple[NodeClaim, Amounts, Amounts]]) -> dict[str, Any]:
    has: defaultdict[str, int] = defaultdict(int)
    requested: defaultdict[str, int] = defaultdict(int)
    for _, own, used in rows:
        for name, amount in own.items():
            has[name] += amount
        for name, amount in used.items():
            requested[name] += amount
    return {"pool": pool or None, "nodes": len(rows), **_share(has, requested)}


def _share(has: Amounts, requested: Amounts) -> dict[str, Any]:
    return {
        "allocatable": {name: resource_text(name, amount) for name, amount in sorted(has.items())},
        "requested": {name: resource_text(name, requested.get(name, 0)) for name in sorted(has)},
        "used": {name: round(requested.get(name, 0) / amount, 4) for name, amount in sorted(has.items()) if amount},
    }
