"""How long the machines of a claim's provider may take, where that is longer than the stage allows."""

from __future__ import annotations

from collections.abc import Mapping

from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.operations.services import Services
from stockyard.ports.nodes import LaunchesSlowly

DRAIN = "drain"


def limits_of(services: Services, claim: NodeClaim) -> Mapping[str, int]:
    """Seconds by phase that the claim's source asks for; see ``ports.nodes.LaunchesSlowly``. Empty for most."""
    placed = claim.placement
    provider = services.store.get(NodeProvider, placed.provider_id) if placed is not None else None
    source: object = services.node_sources.get(provider.kind) if provider is not None else None
    return source.limits(provider) if provider is not None and isinstance(source, LaunchesSlowly) else {}


def drain_seconds(services: Services, claim: NodeClaim) -> int:
    """How long the claim's node may take to be drained before its pods are deleted past their budgets."""
    return max(services.settings.drain_seconds, limits_of(services, claim).get(DRAIN, 0))
