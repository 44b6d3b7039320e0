"""Preview of what disruption would do with a cluster's nodes now, and which rule keeps each of the others. Nothing is
done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stockyard.domain.pools.budgets import (
    DRIFTED,
    EMPTY,
    EXPIRED,
    UNDERUTILIZED,
    allowed,
    budgets_of,
    remaining,
    strictest,
)
from stockyard.domain.pools.disruption_records import REPLACING, ClusterDisruption
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.values import times
from stockyard.domain.values.prices import HOURS_A_MONTH
from stockyard.lifecycle.nodes.node_claim import AVAILABLE
from stockyard.operations.fleet.disruption import run
from stockyard.operations.fleet.disruption.decide import HOLD_REASON
from stockyard.operations.fleet.disruption.fleet import View
from stockyard.operations.fleet.disruption.pause import paused_by
from stockyard.operations.fleet.disruption.record import NOT_READY, words
from stockyard.operations.fleet.disruption.run import next_decision, view_now
from stockyard.operations.fleet.pools.pools import claims_of, pools_of
from stockyard.operations.fleet.state import workload_of
from stockyard.operations.node_claims.delete import is_member
from stockyard.operations.services import Services
from stockyard.scheduling.consolidation.model import WHEN_EMPTY, Decision, RunningNode

UNSEEN = "the cluster's agent does not tell of it as a node that is ready"
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
        "paused_by": paused_by(services, record),
        "paused_pools": [pool.name for pool in pools_of(services, cluster.id) if pool.disruption.get("paused")],
        "resting_until": record.no_savings_until(now),
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
    record = record or ClusterDisruption(cluster.id, services.now(), services.now())
    expired = services.expires_in(run.DEADLINE_SECONDS)
    decision = next_decision(services, record, view, expired) if record.state != REPLACING else None
    # Whoever was cut short must not say that nothing is to be saved.
    is_cut = record.state != REPLACING and expired()
    rows = [_node(view, node, record, decision, is_cut=is_cut) for node in view.fleet.nodes]
    rows += [_bare(claim, NOT_READY, leaves=True) for claim in view.unready]
    listed_ids = {row["claim_id"] for row in rows}
    rows += [_bare(claim, UNSEEN, leaves=False) for claim in claims if claim.id not in listed_ids and _is_node(claim)]
    rows.sort(key=lambda row: (not row["leaves"], -(row["usd_hour"] or 0.0), row["name"]))
    message = f"{_words(view, record, decision)}{_CUT if is_cut else ''}"
    more = f" {len(rows) - MOST_SHOWN} more nodes are not shown." if len(rows) > MOST_SHOWN else ""
    return {
        **answer,
        "message": message + more,
        "decision": _decision(decision) if decision is not None else None,
        "nodes": rows[:MOST_SHOWN],
    }


_CUT = " The search for savings took too long and did not finish: there may be more."


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
                "usd_hour": round(row.usd_hour, 6),
            }
            for replacement, row in zip(decision.replacements, rows, strict=True)
        ],
        "usd_hour_before": round(decision.price_before, 6),
        "usd_hour_after": round(decision.price_after, 6),
        "usd_month_saved": _month(decision.saving),
        "usd_month_possible": None if decision.possible is None else _month(decision.possible),
    }


def _words(view: View, record: ClusterDisruption, decision: Decision | None) -> str:
    """Words for what leaves now."""
    texts = [f"{len(view.unready)} nodes leave, because they are not ready."] if view.unready else []
    if record.state == REPLACING:
        texts.append(f"A decision is being carried out. {record.message}")
    elif decision is not None:
        texts.append(words(decision))
    return " ".join(texts) or "No node would leave now."


def _node(
    view: View, node: RunningNode, record: ClusterDisruption, decision: Decision | None, *, is_cut: bool
) -> dict[str, Any]:
    claim = view.claims[node.name]
    reason = decision.reason if decision is not None and node in decision.nodes else ""
    if record.state == REPLACING and claim.id in record.nodes:
        reason = record.reason
    until = view.until.get(node.name)
    return {
        "name": node.name,
        "claim_id": claim.id,
        "pool": node.pool,
        "type": claim.placement.type if claim.placement is not None else "",
        "usd_hour": round(node.usd_hour, 6),
        "leaves": bool(reason),
        "why": reason or _why(view, node, record, decision, is_cut=is_cut),
        "until": times.to_text(until) if until is not None and not reason else None,
    }


def _why(view: View, node: RunningNode, record: ClusterDisruption, decision: Decision | None, *, is_cut: bool) -> str:
    """Reason why a node stays: the first of the rules that keep it."""
    now = times.to_text(view.now)
    for reason in (EXPIRED, DRIFTED):
        if node in view.replaceable.get(reason, ()):
            return _why_not_replaced(view, node, reason, record, now)
    reason = EMPTY if node.empty else UNDERUTILIZED
    for_price = reason == UNDERUTILIZED
    rules, until = view.fleet.rules_of(node), record.no_savings_until(now)
    is_busy = record.state == REPLACING
    failed = f"no node leaves for its price before {until}: the last decision could not be carried out as planned"
    held_until = record.node_held_until(reason, node.pool, view.claims[node.name].id, now) if for_price else None
    least = f", or by less than the minimum saving of pool {node.pool}" if rules.minimum_saving else ""
    obstacles = (
        (is_busy and view.claims[node.name].id in record.replacements, "it comes in the place of nodes that leave"),
        (bool(node.blocker), str(node.blocker)),
        (for_price and rules.policy == WHEN_EMPTY, f"pool {node.pool} lets only empty nodes go"),
        *((True, text) for text in _bounds(view, node, reason, decision)),
        (is_busy, "another decision is being carried out"),
        (
            node.empty and not node.drifted and node.pool in view.rolled,
            f"it comes in the place of nodes of pool {node.pool} that are replaced",
        ),
        (for_price and bool(until), failed),
        (bool(held_until), f"{HOLD_REASON}; it is tried again at {held_until}"),
        (for_price and is_cut, "the search for savings took too long and did not finish"),
    )
    otherwise = f"its pods would cost no less elsewhere{least}, or others go first"
    return next((why for holds, why in obstacles if holds), otherwise)


def _bounds(view: View, node: RunningNode, reason: str, decision: Decision | None) -> Iterator[str]:
    """Reasons why no more nodes of its pool may go now: a budget, or the floor. All empty nodes go that may, so those
    of the decision count for the others. Nodes with pods may stay for another reason, whatever else goes."""
    going = sum(each.pool == node.pool for each in decision.nodes) if decision is not None and reason == EMPTY else 0
    if view.allowed(node.pool, reason) - going >= 1 or node.pool not in view.pools:
        return
    pool, states = view.pools[node.pool], view.states.get(node.pool, ())
    budgets = budgets_of(pool.disruption)
    if remaining(budgets, reason, states, view.now) - going >= 1:
        yield f"pool {pool.name} is not to have fewer nodes than its floor of {pool.floor}"
        return
    count = sum(state.counts for state in states)
    budget, most = strictest(budgets, reason, count, view.now), allowed(budgets, reason, count, view.now)
    if budget is not None:
        why = "others go first" if going else "no more may go now"
        yield f"the budget {budget.text} of pool {pool.name} lets {most} of its {count} nodes go at a time: {why}"


def _why_not_replaced(view: View, node: RunningNode, reason: str, record: ClusterDisruption, now: str) -> str:
    """Reason why a node that is too old, or not as it would be made now, is still there."""
    until = record.node_held_until(reason, node.pool, view.claims[node.name].id, now)
    if until:
        return f"{reason}: tried again at {until}, as the last such decision could not be carried out"
    if view.allowed(node.pool, reason) < 1:
        return f"{reason}: a budget of pool {node.pool} allows no more nodes now"
    if view.most_more(view.pools[node.pool]) < 1:
        return f"{reason}: the limits of pool {node.pool} leave no room for the node in its place"
    return f"{reason}: others go first, or its pods have no place without it"


def _is_node(claim: NodeClaim) -> bool:
    return claim.phase == AVAILABLE and not claim.deleting and not is_member(claim)


def _bare(claim: NodeClaim, why: str, *, leaves: bool) -> dict[str, Any]:
    """A node of which nothing else is looked at."""
    return {
        "name": claim.node_name or claim.name,
        "claim_id": claim.id,
        "pool": claim.pool,
        "type": claim.placement.type if claim.placement is not None else "",
        "usd_hour": claim.placement.usd_hour if claim.placement is not None else None,
        "leaves": leaves,
        "why": why,
        "until": None,
    }
