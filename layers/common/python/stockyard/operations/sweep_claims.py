"""The sweep of claims: retry blocked deletions, close claims whose workflow is lost, compare nodes with providers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from stockyard.domain import times
from stockyard.domain.records import NodeClaim, NodeProvider, Operation
from stockyard.lifecycle import claim as lifecycle
from stockyard.lifecycle.node_phases import POWER_NODE
from stockyard.lifecycle.operation import execution_name
from stockyard.operations.claims import WORKFLOW_ACTOR, ClaimFence, commit
from stockyard.operations.compare_drift import compare
from stockyard.operations.fail_node import fail
from stockyard.operations.give_back import DELETING, PROVISIONING
from stockyard.operations.services import Services
from stockyard.operations.sweep_clusters import CLOSED, NOTHING, RETRIED


def in_hand(claim: NodeClaim) -> bool:
    """Whether a workflow should be at work on the claim."""
    return claim.deleting or bool(claim.power_wish) or (claim.phase == lifecycle.PENDING and claim.due_at is None)


def sweep_claim(services: Services, claim: NodeClaim, providers: Mapping[str, NodeProvider]) -> str:
    """Bring a claim that nobody works on back to work, and look whether its node is still what its provider would
    make; ``providers`` by id. Says what was done."""
    if in_hand(claim):
        return _brought_back(services, claim)
    provider = providers.get(claim.placement.provider_id) if claim.placement else None
    return compare(services, provider, claim) or NOTHING


def _brought_back(services: Services, claim: NodeClaim) -> str:
    now = services.clock.now()
    retry = timedelta(seconds=services.rules.retry_deletion_seconds)
    if now - times.from_text(claim.updated_at) < retry:
        return NOTHING
    operation = services.store.get(Operation, claim.operation_id) if claim.operation_id else None
    if operation is None or operation.status != "running":
        return NOTHING
    age = now - times.from_text(operation.updated_at)
    stuck = age > timedelta(seconds=services.rules.stuck_seconds)
    name = execution_name(operation)
    if claim.deleting:
        blocked = operation.error is not None and age > retry
        if blocked or (stuck and not services.workflows.running(DELETING, name)):
            commit(services, WORKFLOW_ACTOR, lifecycle.retry_deletion(claim, operation, services.now()))
            return RETRIED
        return NOTHING
    workflow = POWER_NODE if operation.kind == POWER_NODE else PROVISIONING
    if stuck and not services.workflows.running(workflow, name):
        fence = ClaimFence(claim.id, operation.id, claim.attempt)
        fail(services, fence, {"Error": "ExecutionLost", "Cause": "The workflow ended without an answer."})
        return CLOSED
    return NOTHING
