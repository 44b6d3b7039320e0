"""What a tenant pays: now by the hour, and since the month began. From list prices, so it is no bill."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stockyard.domain.cost_records import Usage
from stockyard.domain.records import UNSEEN, Cluster, NodeClaim, Resource
from stockyard.domain.values import times
from stockyard.domain.values.prices import HOURS_A_MONTH, MEMBER, PriceItem
from stockyard.operations.clusters.creation.plan import price_items
from stockyard.operations.clusters.nodes import claims_of
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.listing import every
from stockyard.operations.services import Services

NOT_INCLUDED = (
    "data through NAT gateways, load balancers and between zones or regions",
    "storage and load balancers that pods ask for",
    "what calls of a cloud's API and requests to its storage cost",
)
"""What is billed and in no price: it goes by use, which nobody knows before."""
CLUSTER, NODES = "cluster", "nodes"
"""Kinds of lines: something of a cluster that is no node, and nodes of one pool, type and capacity type."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Something that costs or has cost: ``usd_hour`` from ``since`` to ``until`` (None: it stands)."""

    kind: str
    cluster_id: str
    pool: str
    type: str
    capacity_type: str
    usd_hour: float | None
    since: str
    until: str | None = None
    quantity: int = 1

    @property
    def line(self) -> tuple[str, ...]:
        """What the parts of one line have alike."""
        return self.kind, self.cluster_id, self.pool, self.type, self.capacity_type


@dataclass(slots=True)
class _Line:
    """The sum of parts: what stands, and what the month has cost so far."""

    quantity: int = 0
    hour: float = 0.0
    spent: float = 0.0
    complete: bool = True


@dataclass(slots=True)
class _Sums:
    """The lines of a report whose month began at ``start``, as of ``now``."""

    start: str
    now: str
    lines: dict[tuple[str, ...], _Line] = field(default_factory=dict)

    def add(self, part: _Part) -> None:
        """Count one part."""
        line = self.lines.setdefault(part.line, _Line())
        line.complete = line.complete and part.usd_hour is not None
        usd_hour = part.usd_hour or 0.0
        if part.until is None:
            line.quantity += part.quantity
            line.hour += usd_hour
        line.spent += usd_hour * _hours(max(part.since, self.start), part.until or self.now)


def report(services: Services, cluster: Cluster | None = None) -> dict[str, Any]:
    """The body of the answer: totals and lines of everything of the tenant, or of one cluster."""
    now = services.now()
    sums = _Sums(f"{now[:7]}-01T00:00:00.000Z", now)
    clusters = [cluster] if cluster else [c for c in every(services.store, Cluster) if c.status not in UNSEEN]
    names = {entry.id: entry.name for entry in clusters}
    claims = list(claims_of(services, cluster) if cluster else every(services.store, NodeClaim))
    for part in (*_of_clusters(services, clusters, claims), *_of_claims(claims)):
        sums.add(part)
    for usage in every(services.store, Usage, prefix=f"{now[:7]}/"):
        if cluster is None or usage.cluster_id == cluster.id:
            names |= {usage.cluster_id: usage.cluster} if usage.cluster else {}
            sums.add(_of_usage(usage))
    lines = [_view(key, line, names) for key, line in sorted(sums.lines.items())]
    hour, spent = (sum(getattr(line, name) for line in sums.lines.values()) for name in ("hour", "spent"))
    complete = all(line.complete for line in sums.lines.values())
    amounts = {
        "hour": round(hour, 6),
        "month_rate": round(hour * HOURS_A_MONTH, 2),
        "spent": round(spent, 4),
    }
    return {
        "month": now[:7],
        "since": sums.start,
        "until": now,
        "currency": "USD",
        **{name: amount if complete else None for name, amount in amounts.items()},
        **{f"known_{name}": amount for name, amount in amounts.items()},
        "complete": complete,
        "not_included": list(NOT_INCLUDED),
        "lines": lines,
    }


def _of_clusters(services: Services, clusters: Iterable[Cluster], claims: Sequence[NodeClaim]) -> Iterator[_Part]:
    """What of the clusters is billed beside their nodes. Of one that is not ready what has been made and stands."""
    for cluster in clusters:
        if cluster.driver not in services.cluster_drivers:
            continue
        items: Iterable[PriceItem] = price_items(services, cluster)
        if cluster.status != "ready":
            members = [claim for claim in claims if claim.control_plane and claim.cluster_id == cluster.id]
            items = _made_items(items, lines_of(services, cluster.id), sum(1 for member in members if member.placement))
        for item in items:
            yield _Part(CLUSTER, cluster.id, "", item.name, "", item.hour, cluster.created_at, quantity=item.quantity)


def _made_items(items: Iterable[PriceItem], lines: Iterable[Resource], members: int) -> Iterator[PriceItem]:
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


def _of_claims(claims: Iterable[NodeClaim]) -> Iterator[_Part]:
    """The nodes that stand or are about to. Members of a control plane are items of their cluster."""
    for claim in claims:
        placed = claim.placement
        if placed is not None and not claim.control_plane:
            yield _Part(
                NODES,
                claim.cluster_id,
                claim.pool,
                placed.type,
                placed.capacity_type,
                placed.usd_hour,
                placed.decided_at,
            )


def _of_usage(usage: Usage) -> _Part:
    kind = CLUSTER if usage.cluster else NODES
    return _Part(
        kind,
        usage.cluster_id,
        usage.pool,
        usage.type,
        usage.capacity_type,
        usage.usd_hour,
        usage.since,
        usage.until,
    )


def _view(key: tuple[str, ...], line: _Line, names: dict[str, str]) -> dict[str, Any]:
    kind, cluster_id, pool, node_type, capacity_type = key
    return {
        "kind": kind,
        "cluster_id": cluster_id or None,
        "cluster": names.get(cluster_id),
        "pool": pool or None,
        "type": node_type,
        "capacity_type": capacity_type or None,
        "quantity": line.quantity,
        "hour": round(line.hour, 6) if line.complete else None,
        "month_rate": round(line.hour * HOURS_A_MONTH, 2) if line.complete else None,
        "spent": round(line.spent, 4) if line.complete else None,
    }


def _hours(since: str, until: str) -> float:
    return max(0.0, (times.from_text(until) - times.from_text(since)).total_seconds() / 3600)
