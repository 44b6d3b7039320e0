"""The parts of what a tenant pays: items of its clusters, nodes that stand, and what is gone."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from stockyard.domain.cost_records import Usage
from stockyard.domain.month_budgets import hours_between
from stockyard.domain.records import Cluster, NodeClaim, Resource
from stockyard.domain.values.prices import MEMBER, PriceItem
from stockyard.domain.values.states import ClusterStatus
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.services import Services

CLUSTER, NODES = "cluster", "nodes"
"""Kinds of lines: something of a cluster that is no node, and nodes of one pool, type and capacity type."""
COMING: tuple[ClusterStatus, ...] = ("accepting", "preparing")
"""Statuses of clusters that are being made."""


class CostPart(NamedTuple):
    """Something that costs: ``usd_hour`` together, from ``since`` on."""

    kind: str
    cluster_id: str
    pool: str
    type: str
    capacity_type: str
    usd_hour: float | None
    since: str
    quantity: int = 1

    @property
    def line(self) -> tuple[str, ...]:
        """Common values of the parts of one line."""
        return self[:5]


def price_items(services: Services, cluster: Cluster) -> Sequence[PriceItem]:
    """Everything of a cluster that is billed while it stands, without its workers."""
    return services.cluster_drivers[cluster.driver].plan(cluster, services.prices).items


def of_clusters(
    services: Services, clusters: Iterable[Cluster], claims: Sequence[NodeClaim], *, ahead: bool = False
) -> Iterator[CostPart]:
    """Billed parts of the clusters beside their nodes. Of one that is not ready what has been made and stands;
    ``ahead``: of one that is being made all that it will have."""
    whole = ("ready", *COMING) if ahead else ("ready",)
    for cluster in clusters:
        if cluster.driver not in services.cluster_drivers:
            continue
        items: Iterable[PriceItem] = price_items(services, cluster)
        if cluster.status not in whole:
            members = [claim for claim in claims if claim.control_plane and claim.cluster_id == cluster.id]
            items = made_items(items, lines_of(services, cluster.id), sum(1 for member in members if member.placement))
        for item in items:
            yield CostPart(
                CLUSTER, cluster.id, "", item.name, "", item.hour, cluster.created_at, quantity=item.quantity
            )


def of_groups(services: Services, clusters: Iterable[Cluster]) -> Iterator[CostPart]:
    """The nodes that groups of new clusters will have by themselves, before there are claims for them."""
    for cluster in clusters:
        driver = services.cluster_drivers.get(cluster.driver)
        if cluster.status in COMING and driver is not None:
            for item in driver.group_items(cluster, services.prices):
                yield CostPart(NODES, cluster.id, "", item.name, "", item.hour, cluster.created_at, item.quantity)


def made_items(items: Iterable[PriceItem], lines: Iterable[Resource], members: int) -> Iterator[PriceItem]:
    """The items as far as the ledger has them as made. ``members`` of the control plane have ledgers of their own."""
    counts: Tally[str] = Tally()
    for line in lines:
        if line.state == "made":
            counts[f"{line.phase}/{line.kind}"] += 1
    if not counts:
        return
    counts[MEMBER] += members
    for item in items:
        count = sum(counts[line] * share for line, share in item.made_as) if item.made_as else item.quantity
        count = min(count, item.quantity)
        if count:
            hour = None if item.hour is None else item.hour * count / item.quantity
            yield replace(item, quantity=count, hour=hour)


def of_claims(claims: Iterable[NodeClaim]) -> Iterator[CostPart]:
    """The nodes that stand or are about to. Members of a control plane are items of their cluster."""
    for claim in claims:
        placed = claim.placement
        if placed is not None and not claim.control_plane:
            yield CostPart(
                NODES,
                claim.cluster_id,
                claim.pool,
                placed.type,
                placed.capacity_type,
                placed.usd_hour,
                placed.decided_at,
            )


class PastCost(NamedTuple):
    """Sum of what is gone: its ``line``, USD that it has cost in the month as far as that is known, and whether all of
    it is."""

    line: tuple[str, ...]
    spent: float
    complete: bool


def of_usage(usage: Usage, month: str) -> PastCost:
    """Cost of what is gone in the month that began at that moment."""
    kind = CLUSTER if usage.cluster else NODES
    spent = (usage.usd_hour or 0.0) * hours_between(max(usage.since, month), usage.until)
    line = (kind, usage.cluster_id, usage.pool, usage.type, usage.capacity_type)
    return PastCost(line, spent, usage.usd_hour is not None)
