"""Tables of pools, and of the needs of pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stockyard_client.base_models import Model
from stockyard_client.cli.output.node_tables import dollars, pairs_of
from stockyard_client.cli.output.tables import Column, Printer
from stockyard_client.pool_models import NodePods, PlannedNode, Pool

if TYPE_CHECKING:
    from stockyard_client.client import Client

MOST_PODS = 4


def title(pool: Pool) -> str:
    """The name of the pool, and a differing name of its node group: the control plane's."""
    return pool.name if pool.group in (None, pool.name) else f"{pool.name} ({pool.group})"


def nodes(pool: Pool) -> str:
    """Number of nodes that are available, of those asked for; and how many more are on their way out, and still
    paid."""
    leaving = f" ({pool.nodes.leaving} leave)" if pool.nodes.leaving else ""
    return f"{pool.nodes.available}/{pool.nodes.claims}{leaving}"


def state(pool: Pool) -> str:
    """Ready, why not, or that it is on its way out."""
    if pool.deleting:
        return "Deleting"
    condition = pool.condition
    return "Preparing" if condition is None else "Ready" if condition.status == "True" else condition.reason


def message(pool: Pool) -> str:
    """Message of the pool's condition."""
    return pool.condition.message if pool.condition is not None else ""


def why(pool: Pool) -> str:
    """Reason why the pool lacks nodes: what its condition says, or which limit keeps pods waiting; empty for
    neither."""
    if pool.condition is not None and pool.condition.status != "True":
        return pool.condition.message
    limits = (condition for condition in pool.conditions if condition.type == "WithinLimits")
    return next((condition.message for condition in limits if condition.status == "False"), "")


class PlannedNodes(Model):
    """Equal nodes of a plan: one of them, how many, and the pods on all."""

    node: PlannedNode
    count: int = 1
    pods: int = 0


def equal_nodes(nodes: Sequence[PlannedNode]) -> list[PlannedNodes]:
    """The nodes by what they are, the most first."""
    groups: dict[tuple[Any, ...], list[PlannedNode]] = {}
    for node in nodes:
        alike = (node.pool, node.type, node.zone, node.capacity_type, node.usd_hour)
        groups.setdefault(alike, []).append(node)
    rows = [
        PlannedNodes(node=group[0], count=len(group), pods=sum(len(node.pods) for node in group))
        for group in groups.values()
    ]
    return sorted(rows, key=lambda row: (-row.count, row.node.type))


def pods_of(node: PlannedNode | NodePods) -> str:
    """The first pods on the node, and how many more there are."""
    more = f" (+{len(node.pods) - MOST_PODS})" if len(node.pods) > MOST_PODS else ""
    return ", ".join(node.pods[:MOST_PODS]) + more


POOLS: Printer[Pool] = Printer(
    (
        Column("NAME", title, give=1),
        Column("KIND", lambda p: p.kind),
        Column("STATE", state),
        Column("NODES", nodes),
        Column("AT LEAST", lambda p: p.nodes.desired),
        Column("LIMITS", lambda p: pairs_of(p.limits), give=2),
        Column("USD/HOUR", lambda p: dollars(p.nodes.usd_hour)),
        Column("AGE", lambda p: p.created_at, is_age=True),
        Column("WHY", why, give=3),
        Column("PROVIDER", lambda p: p.provider, wide=True),
        Column("WEIGHT", lambda p: p.weight or None, wide=True),
        Column("CREATED", lambda p: p.created_at, wide=True),
        Column("MESSAGE", message, wide=True),
    ),
    lambda p: p.name,
)


def of_all_clusters(client: Client) -> tuple[dict[str, str], list[Pool]]:
    """The names of the clusters by their ids, and the pools of each in turn."""
    clusters = list(client.clusters.list(page_size=200))
    pools = [pool for cluster in clusters for pool in client.pools.list(cluster.id, page_size=200)]
    return {cluster.id: cluster.name for cluster in clusters}, pools


def with_cluster(names: Mapping[str, str]) -> Printer[Pool]:
    """The columns of pools of several clusters, whose names go by their ids."""
    cluster: Column[Pool] = Column("CLUSTER", lambda p: names.get(p.cluster_id, p.cluster_id))
    return Printer((cluster, *POOLS.columns), POOLS.name)


PLANNED_NODES: Printer[PlannedNodes] = Printer(
    (
        Column("NODES", lambda n: n.count),
        Column("TYPE", lambda n: n.node.type, give=1),
        Column("ZONE", lambda n: n.node.zone, spare=True),
        Column("CAPACITY TYPE", lambda n: n.node.capacity_type),
        Column("USD/HOUR EACH", lambda n: dollars(n.node.usd_hour, owned=n.node.owned)),
        Column("PODS", lambda n: n.pods),
        Column("POOL", lambda n: n.node.pool),
        Column("OTHER TYPES", lambda n: n.node.alternatives, wide=True),
        Column("NAMES", lambda n: pods_of(n.node), wide=True),
    ),
    lambda n: n.node.type,
)

EXISTING_NODES: Printer[NodePods] = Printer(
    (
        Column("NODE", lambda n: n.node, give=1),
        Column("STATE", lambda n: "Ready" if n.ready else "OnItsWay"),
        Column("PODS", lambda n: len(n.pods)),
        Column("NAMES", pods_of, wide=True),
    ),
    lambda n: n.node,
)
