"""The sweep of claims: retry blocked deletions, close claims whose workflow is lost, compare nodes with providers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from stockyard.domain import times
from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.lifecycle.node_claim import PENDING
from stockyard.operations.engine.sweep import NOTHING, sweep_operation
from stockyard.operations.node_claims.drift import compare
from stockyard.operations.node_claims.phases import RUNNER
from stockyard.operations.services import Services


def in_hand(claim: NodeClaim) -> bool:
    """Whether a workflow should be at work on the claim."""
    return claim.deleting or bool(claim.power_wish) or (claim.phase == PENDING and claim.due_at is None)


def sweep_claim(services: Services, claim: NodeClaim, providers: Mapping[str, NodeProvider]) -> str:
    """Bring a claim that nobody works on back to work, and look whether its node is still what its provider would
    make; ``providers`` by id. Says what was done."""
    if in_hand(claim):
        return _brought_back(services, claim)
    provider = providers.get(claim.placement.provider_id) if claim.placement else None
    return compare(services, provider, claim) or NOTHING


def _brought_back(services: Services, claim: NodeClaim) -> str:
    age = services.clock.now() - times.from_text(claim.updated_at)
    if age < timedelta(seconds=services.settings.retry_deletion_seconds):
        return NOTHING
    return sweep_operation(RUNNER, services, claim)
