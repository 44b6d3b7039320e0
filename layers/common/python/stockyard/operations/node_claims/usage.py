"""Keeps what a node has cost beyond the life of its claim, in the very write that removes the claim."""

from __future__ import annotations

from stockyard.domain.cost_records import Usage, usage_id
from stockyard.domain.records import NodeClaim
from stockyard.operations.services import Services
from stockyard.ports import Put, Write


def claim_usage(services: Services, claim: NodeClaim) -> list[Write]:
    """Cost of the claim's node until now; nothing for one that got no machine. Members of a control plane are counted
    with their cluster."""
    placed = claim.placement
    if placed is None or not claim.machine_id or claim.control_plane:
        return []
    now = services.now()
    usage = Usage(
        id=usage_id(now, claim.id),
        cluster_id=claim.cluster_id,
        cluster="",
        pool=claim.pool,
        type=placed.type,
        capacity_type=placed.capacity_type,
        usd_hour=placed.usd_hour,
        since=placed.decided_at,
        until=now,
    )
    return [Put(usage)]
