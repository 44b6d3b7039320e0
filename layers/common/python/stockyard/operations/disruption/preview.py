"""What disruption would do with a cluster's nodes now, and which rule keeps each of the others. Nothing is done."""

from __future__ import annotations

from typing import Any

from stockyard.domain import times
from stockyard.domain.budgets import EMPTY, UNDERUTILIZED
from stockyard.domain.disruption_records import ClusterDisruption
from stockyard.domain.prices import HOURS_A_MONTH
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.operations.disruption.fleet import View
from stockyard.operations.disruption.pause import paused_by
from stockyard.operations.disruption.record import NOT_READY, words
from stockyard.operations.disruption.run import next_decision, view_now
from stockyard.operations.pools.pools import claims_of, pools_of
from stockyard.operations.pools.workload import workload_of
from stockyard.operations.services import Services
from stockyard.scheduling.consolidation.model import WHEN_EMPTY, Decision, RunningNode

STEPS = 40_000_000
"""The work for one answer: some seconds of one core, for an answer within those of a request."""
MOST_SHOWN = 1000
"""Nodes of an answer; those that would leave come first."""


def disruption_view(services: Services, cluster: Cluster) -> dict[str, Any]:
    """The state of the cluster's disruption as a ``ClusterDisruptionView`` document."""
    now = services.now()
    record = services.store.get(ClusterDisruption, cluster.id) or ClusterDisruption(cluster.id, now, now)
    savings = record.savings if record.savings_month == now[:7] else {}
    return {
        "cluster_id": cluster.id,
        "state": record.state,
        "reason": record.reason or None,
        "message": record.message,
        "paused": record.switched_off,
        "paused_by": paused_by(services, record) or None,
        "resting_until": record.no_savings_until(now) or None,
        "nodes": list(record.nodes),
        "replacements": list(record.replacements),
        "usd_hour_before": round(record.price_before, 6),
        "usd_hour_after": round(record.price_after, 6),
        "decided_at": record.decided_at or None,
        "due_at": record.due_at,
        "usd_month_possible": None if record.possible is None else _month(record.possible),
        "usd_month_saved": _month(sum(savings.values())),
        "savings": [{"pool": pool, "usd_month": _month(usd)} for pool, usd in sorted(savings.items())],
    }


def preview(services: Services, cluster: Cluster) -> dict[str, Any]:
    """The answer as a ``DisruptionPreviewView`` document."""
    record = services.store.get(ClusterDisruption, cluster.id)
    pools, claims = pools_of(services, cluster.id), claims_of(services, cluster.id)
    view, why = view_now(services, cluster, record, pools, claims)
    workload = workload_of(services, cluster.id)
    answer: dict[str, Any] = {
        "cluster_id": cluster.id,
        "observed_at": workload.observed_at if workload is not None else None,
        "message": why,
        "decision": None,
        "nodes": [],
    }
    if view is None:
        return answer
    decision = next_decision(services, record, view, STEPS)
    rows = [_node(view, node, decision) for node in view.fleet.nodes]
    rows += [_unready(claim) for claim in view.unready]
    rows.sort(key=lambda row: (not row["leaves"], -(row["usd_hour"] or 0.0), row["name"]))
    message = words(decision) if decision is not None else "No node would leave now."
    more = f" {len(rows) - MOST_SHOWN} more nodes are not shown." if len(rows) > MOST_SHOWN else ""
    return {
        **answer,
        "message": message + more,
        "decision": _decision(decision) if decision is not None else None,
        "nodes": rows[:MOST_SHOWN],
    }


def _month(usd_hour: float) -> float:
    return round(usd_hour * HOURS_A_MONTH, 2)


def _decision(decision: Decision) -> dict[str, Any]:
    rows = [replacement.claim.row for replacement in decision.replacements]
    return {
        "reason": decision.reason,
        "nodes": [node.name for node in decision.nodes],
        "replacements": [
            {
                "pool": replacement.claim.pool.name,
                "type": row.node_type.name,
                "zone": row.zone,
                "capacity_type": row.capacity_type,
                "usd_hour": round(row.price, 6),
            }
            for replacement, row in zip(decision.replacements, rows, strict=True)
        ],
        "usd_hour_before": round(decision.price_before, 6),
        "usd_hour_after": round(decision.price_after, 6),
        "usd_month_saved": _month(decision.saving),
        "usd_month_possible": None if decision.possible is None else _month(decision.possible),
    }


def _node(view: View, node: RunningNode, decision: Decision | None) -> dict[str, Any]:
    claim = view.claims[node.name]
    leaves = decision is not None and node in decision.nodes
    until = view.until.get(node.name)
    return {
        "name": node.name,
        "claim_id": claim.id,
        "pool": node.pool,
        "type": claim.placement.type if claim.placement is not None else "",
        "usd_hour": round(node.price, 6),
        "leaves": leaves,
        "why": decision.reason if leaves and decision is not None else _why(view, node),
        "until": times.to_text(until) if until is not None and not leaves else None,
    }


def _why(view: View, node: RunningNode) -> str:
    """Why a node stays."""
    if node.hindrance:
        return node.hindrance
    reason = EMPTY if node.empty else UNDERUTILIZED
    if reason == UNDERUTILIZED and view.fleet.rules_of(node).policy == WHEN_EMPTY:
        return f"pool {node.pool} lets only empty nodes go"
    if view.allowed(node.pool, reason) < 1:
        return f"a budget or the floor of pool {node.pool} allows no more nodes now"
    return "its pods would cost no less elsewhere, or others go first"


def _unready(claim: NodeClaim) -> dict[str, Any]:
    return {
        "name": claim.node_name or claim.name,
        "claim_id": claim.id,
        "pool": claim.pool,
        "type": claim.placement.type if claim.placement is not None else "",
        "usd_hour": claim.placement.usd_hour if claim.placement is not None else None,
        "leaves": True,
        "why": NOT_READY,
        "until": None,
    }
