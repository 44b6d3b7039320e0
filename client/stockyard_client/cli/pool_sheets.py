"""How pools, and what pods would need, are tabulated."""

from __future__ import annotations

from stockyard_client.cli.node_sheets import dollars, pairs_of
from stockyard_client.cli.output import Column, Sheet
from stockyard_client.pool_models import PlannedNode, Pool

MOST_PODS = 4


def state(pool: Pool) -> str:
    """Ready, why not, or that it is on its way out."""
    if pool.deleting:
        return "Deleting"
    condition = pool.condition
    return "Preparing" if condition is None else "Ready" if condition.status == "True" else condition.reason


def message(pool: Pool) -> str:
    """What its condition says."""
    return pool.condition.message if pool.condition is not None else ""


def pods_of(node: PlannedNode) -> str:
    """The first pods on the node, and how many more there are."""
    more = f" (+{len(node.pods) - MOST_PODS})" if len(node.pods) > MOST_PODS else ""
    return ", ".join(node.pods[:MOST_PODS]) + more


POOLS: Sheet[Pool] = Sheet(
    (
        Column("NAME", lambda p: p.name),
        Column("KIND", lambda p: p.kind),
        Column("STATE", state),
        Column("NODES", lambda p: f"{p.nodes.available}/{p.nodes.claims}"),
        Column("AT LEAST", lambda p: p.nodes.desired),
        Column("LIMITS", lambda p: pairs_of(p.limits)),
        Column("USD/HOUR", lambda p: dollars(p.nodes.usd_hour)),
        Column("PROVIDER", lambda p: p.provider, wide=True),
        Column("WEIGHT", lambda p: p.weight or None, wide=True),
        Column("CREATED", lambda p: p.created_at, wide=True),
        Column("MESSAGE", message, wide=True),
    ),
    lambda p: p.name,
)
PLANNED_NODES: Sheet[PlannedNode] = Sheet(
    (
        Column("POOL", lambda n: n.pool),
        Column("TYPE", lambda n: n.type),
        Column("ZONE", lambda n: n.zone),
        Column("CAPACITY TYPE", lambda n: n.capacity_type),
        Column("USD/HOUR", lambda n: dollars(n.usd_hour)),
        Column("PODS", lambda n: len(n.pods)),
        Column("NAMES", pods_of, wide=True),
    ),
    lambda n: n.type,
)
