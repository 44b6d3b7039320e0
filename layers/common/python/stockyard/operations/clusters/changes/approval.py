"""Changes that replace nodes wait for somebody's approval, where a cluster's settings ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stockyard.domain.records import Cluster, Operation
from stockyard.errors import IllegalTransition
from stockyard.lifecycle.clusters import repave
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.pools.pool import living
from stockyard.operations.clusters.changes.queue import begin_next
from stockyard.operations.clusters.changes.reconfigure import current_operation
from stockyard.operations.engine.advance import Fence, commit, until_written
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.fleet.pools.pools import claims_of
from stockyard.operations.services import Services
from stockyard.ports import Outcome

LOOK_AGAIN = 300
"""Seconds: looks only end a wait that has lasted too long. Who approves begins the next execution at once."""


def await_approval(services: Services, cluster: Cluster, fence: Fence[Cluster]) -> Outcome:  # noqa: ARG001
    """Done when nothing is replaced, when nobody has to approve of it, or when somebody has."""
    operation = services.store.get(Operation, fence.operation_id)
    if operation is None or repave.state_of(operation) != repave.PENDING:
        return Outcome(
            True, "Nobody has to approve of it." if operation is None or not operation.repave else "Approved."
        )
    text = " ".join(reason["message"] for reason in operation.repave["reasons"])
    return Outcome(False, f"Waits for approval. {text}", wait_seconds=LOOK_AGAIN)


@until_written("cluster changes too often for the repave to be decided on")
def decide_repave(services: Services, id_or_name: str, *, approved: bool, actor: str) -> Cluster:
    """The cluster, whose change goes on, or is taken back. A second request of the same changes nothing.

    ``IllegalTransition`` where nothing waits for approval.
    """
    cluster = find_cluster(services, id_or_name)
    operation = current_operation(services, cluster)
    if operation is None:
        raise IllegalTransition("Nothing waits for approval.")
    decide = repave.approve if approved else repave.revert
    change = decide(cluster, operation, actor, services.now())
    if change is None:
        return cluster
    if approved:
        change = MOVES.in_next_execution(change, services.procedure(operation.kind, cluster.driver))
    changed = commit(services, actor, change)
    if not approved:
        begin_next(services, cluster.id)
    return changed


def repave_view(services: Services, cluster: Cluster) -> dict[str, Any]:
    """The last change's repave as a ``RepaveView`` document."""
    operation = current_operation(services, cluster)
    state = repave.state_of(operation)
    reasons = operation.repave["reasons"] if operation is not None and state != repave.NONE else []
    return {
        "state": state,
        "reasons": list(reasons),
        "nodes": sorted(_nodes(services, cluster, operation)) if operation is not None and reasons else [],
        "operation_id": operation.id if operation is not None and reasons else None,
    }


def _nodes(services: Services, cluster: Cluster, operation: Operation) -> Iterator[str]:
    """The nodes that were there before the operation and that it replaces."""
    codes = {reason["code"] for reason in operation.repave["reasons"]}
    everywhere = bool(codes & {repave.VERSION_CHANGED, repave.REQUESTED})
    pools = {reason.get("pool", "") for reason in operation.repave["reasons"]} - {""}
    for claim in living(claims_of(services, cluster.id)):
        is_member = claim.control_plane and codes & repave.OF_MEMBERS
        in_pool = claim.pool in pools or (everywhere and bool(claim.pool))
        if claim.created_at < operation.created_at and (is_member or in_pool):
            yield claim.node_name or claim.name
    if codes & repave.OF_MEMBERS and cluster.instance_id and not _has_members(services, cluster):
        yield cluster.instance_id


def _has_members(services: Services, cluster: Cluster) -> bool:
    return any(claim.control_plane for claim in claims_of(services, cluster.id))
