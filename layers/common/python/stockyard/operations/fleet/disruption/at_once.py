"""Nodes that leave at once, beside any decision: what has failed already, and what its cloud is about to take."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.records import NodeClaim
from stockyard.errors import Conflict, NotFound
from stockyard.lifecycle.nodes.interruption import INTERRUPTED
from stockyard.lifecycle.pools.pool import later_than
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.fleet.disruption import measurements
from stockyard.operations.fleet.disruption.record import DISRUPTED, NOT_READY, REPAIRED, few, write
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.operations.services import Services

LOOK_SECONDS = 60
"""When the cluster is looked at again."""


def repair(
    services: Services, record: ClusterDisruption, claims: Sequence[NodeClaim], reason: str = NOT_READY
) -> ClusterDisruption:
    """Give nodes back that have not been ready for too long, or whose Node object is gone. Nothing on them can be moved
    in order any more, so that nothing is waited for: their pods get other nodes at once."""
    for claim in claims:
        with suppress(NotFound, Conflict):
            delete_claim(services, claim.id, WORKFLOW_ACTOR, grace_seconds=0)
    text = f"{len(claims)} nodes leave ({reason}): {few(claim.name for claim in claims)}."
    due_at = later_than(services.now(), LOOK_SECONDS)
    after = write(services, record, (REPAIRED, text), message=text, due_at=due_at)
    measurements.decided(services, record, reason)
    measurements.disrupted(services, record, reason, len(claims), None)
    return after


def evacuate(services: Services, record: ClusterDisruption, claims: Sequence[NodeClaim]) -> ClusterDisruption:
    """Give back nodes that their cloud may interrupt at any moment, once their pods have room elsewhere. A decision
    that is being carried out goes on."""
    text = f"{len(claims)} nodes leave ({INTERRUPTED}): {few(claim.name for claim in claims)}."
    due_at = later_than(services.now(), LOOK_SECONDS)
    record = write(services, record, (DISRUPTED, text), message=text, due_at=due_at)
    measurements.decided(services, record, INTERRUPTED)
    for claim in claims:
        with suppress(NotFound, Conflict):
            delete_claim(services, claim.id, WORKFLOW_ACTOR)
    measurements.disrupted(services, record, INTERRUPTED, len(claims), None)
    return record
