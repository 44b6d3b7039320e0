"""The price of a cluster with all its nodes, now and after a change: lines of a bill."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from stockyard.domain.month_budgets import Scope, usd_month_of
from stockyard.domain.nodes.prices import total
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.pools.node_groups import GROUP_SETTINGS, follows, name_of, worker_groups
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.values.prices import PriceItem
from stockyard.operations.clusters.nodes import claims_of
from stockyard.operations.costs.parts import price_items
from stockyard.operations.costs.plan_notes import budget_warnings, known_hour
from stockyard.operations.fleet.pools.leaving import leaving_nodes
from stockyard.operations.services import Services


def items_now(services: Services, cluster: Cluster) -> list[PriceItem]:
    """Prices of everything that costs money now, as the report of the costs has it: what is billed beside the nodes,
    and each node."""
    return [*price_items(services, cluster), *_node_items(_placed_workers(services, cluster))]


def items_after(services: Services, cluster: Cluster, target: Cluster) -> list[PriceItem]:
    """The same once the cluster is as its target. Nodes that stay cost what they cost now. A group whose nodes would
    cost something else, or that has fewer than its floor, has the others at the price that they would have."""
    given_back = {name for each in leaving_nodes(services, cluster, target) for name in each.given_back}
    by_pool: dict[str, list[NodeClaim]] = {}
    for claim in _placed_workers(services, cluster):
        if claim.name not in given_back and not claim.deleting:
            by_pool.setdefault(claim.pool, []).append(claim)
    counts: dict[str, int] = {}
    # Where pools do not follow the settings, these say only what a new cluster begins with.
    groups = worker_groups(target.settings) if follows(cluster) or cluster.status != "ready" else []
    for group in groups:
        name = name_of(group)
        present = by_pool.get(name, [])
        count = min(max(len(present), int(group["min_size"])), int(group["max_size"]))
        if _price_of_one(services, cluster, name) != _price_of_one(services, target, name):
            by_pool.pop(name, None)
            counts[name] = count
        elif count > len(present):
            counts[name] = count - len(present)
    staying = [claim for claims in by_pool.values() for claim in claims]
    return [*price_items(services, target), *_node_items(staying), *_group_items(services, target, counts)]


def budget_remarks(services: Services, cluster: Cluster, target: Cluster) -> list[dict[str, Any]]:
    """Warnings of a change that costs more than budgets have room for."""
    more = known_hour(items_after(services, cluster, target)) - known_hour(items_now(services, cluster))
    return budget_warnings(services, cluster.id, "", more)


def limits_remarks(services: Services, cluster: Cluster, limits: Mapping[str, str] | None) -> list[dict[str, Any]]:
    """Warnings of other limits, whose budget is reached at once. None: they stay."""
    if limits is None or usd_month_of(limits) == usd_month_of(cluster.limits):
        return []
    return budget_warnings(services, cluster.id, "", 0.0, {Scope(cluster.id): usd_month_of(limits)})


def _placed_workers(services: Services, cluster: Cluster) -> list[NodeClaim]:
    """The members of the control plane are items of the cluster."""
    return [claim for claim in claims_of(services, cluster) if claim.placement is not None and not claim.control_plane]


def _node_items(claims: Iterable[NodeClaim]) -> list[PriceItem]:
    """A line for the nodes of each pool, type and capacity type."""
    alike: dict[tuple[str, str, str], list[float | None]] = {}
    for claim in claims:
        placed = claim.placement
        if placed is not None:
            alike.setdefault((claim.pool, placed.type, placed.capacity_type), []).append(placed.usd_hour)
    return [
        PriceItem(f"{_nodes_of(len(prices), pool)} ({node_type}, {capacity_type})", len(prices), total(prices))
        for (pool, node_type, capacity_type), prices in sorted(alike.items())
    ]


def _nodes_of(count: int, pool: str) -> str:
    return f"{count} {'node' if count == 1 else 'nodes'} of {f'pool {pool}' if pool else 'no pool'}"


def _price_of_one(services: Services, cluster: Cluster, name: str) -> Sequence[PriceItem]:
    """Price of a node of the group in these settings; nothing where they have no such group."""
    return _group_items(services, cluster, {name: 1})


def _group_items(services: Services, cluster: Cluster, counts: Mapping[str, int]) -> Sequence[PriceItem]:
    """Lines for so many nodes of each group; of a group that is not named there are none."""
    settings: dict[str, Any] = {**cluster.settings}
    for key in GROUP_SETTINGS & settings.keys():
        settings[key] = [_sized(group, counts.get(name_of(group), 0)) for group in settings[key] or ()]
    return services.cluster_drivers[cluster.driver].group_items(replace(cluster, settings=settings), services.prices)


def _sized(group: Group, count: int) -> dict[str, Any]:
    return {**group, "min_size": count, **({"count": count} if "count" in group else {})}
