"""Pools as the documents that callers receive: the pool part of ``domain.views``, by the same rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from stockyard.domain.nodes.records import NodeClaim
from stockyard.domain.nodes.views import requirement_view
from stockyard.domain.pools.budgets import DEFAULT_NODES
from stockyard.domain.pools.node_groups import group_name
from stockyard.domain.pools.records import CONTROL_PLANE, STATIC, Pool, PoolSpec
from stockyard.domain.values.conditions import Condition
from stockyard.domain.views import CHANGES, attributes

_OTHERWISE = ("provider_ref", "requirements", "disruption")
"""Parts of the specification that callers see in another form than the record's."""
_POOL = (
    "cluster_id",
    "name",
    "form",
    *(part.name for part in fields(PoolSpec) if part.name not in _OTHERWISE),
    "deleting",
    "conditions",
    "generation",
    "created_by",
    *CHANGES,
)
_BUDGET = {
    "nodes": "nodes",
    "reasons": "reasons",
    "schedule": "schedule",
    "duration": "duration",
    "time_zone": "timeZone",
}


def pool_view(pool: Pool, claims: Sequence[NodeClaim]) -> dict[str, Any]:
    """``pool`` as a ``PoolView`` document; ``claims`` are those of the pool."""
    if pool.form == CONTROL_PLANE:
        pool = replace(pool, conditions=(_members_condition(pool, claims),))
    return {
        **attributes(pool, _POOL),
        "group": group_name(pool),
        "provider": pool.provider_ref,
        "requirements": [requirement_view(requirement) for requirement in pool.requirements],
        "disruption": _disruption(pool.disruption),
        "nodes": nodes_of(pool, claims),
        "warnings": [],
    }


def _members_condition(pool: Pool, claims: Sequence[NodeClaim]) -> Condition:
    """``Ready`` of the pool of a control plane's members: no pass looks at it, so it follows from its claims."""
    nodes = nodes_of(pool, claims)
    complete = not pool.deleting and nodes["available"] >= nodes["desired"] and nodes["available"] == len(claims)
    message = f"{nodes['available']} of {nodes['desired']} members are available."
    changed_at = max([pool.created_at, *(claim.updated_at for claim in claims)])
    return Condition(
        "Ready", "True" if complete else "False", "Satisfied" if complete else "Scaling", message, changed_at
    )


def nodes_of(pool: Pool, claims: Sequence[NodeClaim]) -> dict[str, Any]:
    """Numbers of nodes that the pool is to have at least, and has. ``usd_hour`` is None while a price is not known."""
    living = [claim for claim in claims if not claim.deleting]
    return {
        "desired": pool.quantity if pool.kind == STATIC else pool.floor,
        "claims": len(living),
        "available": sum(claim.phase == "Available" for claim in living),
        "leaving": len(claims) - len(living),
        "usd_hour": hourly_price(claims),
    }


def hourly_price(claims: Iterable[NodeClaim]) -> float | None:
    """USD an hour of all claims that are placed, those on their way out too; None while one's price is not known."""
    prices = [claim.placement.usd_hour for claim in claims if claim.placement is not None]
    known_prices = [price for price in prices if price is not None]
    return round(sum(known_prices), 6) if len(known_prices) == len(prices) else None


def _disruption(block: dict[str, Any]) -> dict[str, Any] | None:
    if not block:
        return None
    return {
        "consolidate_after": block.get("consolidateAfter", ""),
        "consolidation_policy": block.get("consolidationPolicy", ""),
        "minimum_saving": block.get("minimumSaving", 0.0),
        "paused": bool(block.get("paused")),
        "budgets": [
            {name: budget.get(key) for name, key in _BUDGET.items()}
            for budget in block.get("budgets", [{"nodes": DEFAULT_NODES}])
        ],
    }
