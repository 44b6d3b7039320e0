"""The sweep of records: undo expired leases, retry blocked deletions, close operations whose workflow is lost, compare
nodes with their providers. Each function says what it has done; None for nothing."""

from __future__ import annotations

from collections.abc import Mapping

from stockyard.domain.records import Cluster, NodeClaim, NodeProvider
from stockyard.lifecycle.nodes.node_claim import PENDING
from stockyard.operations.clusters.creation.undo_acceptance import undo
from stockyard.operations.clusters.kept_secrets import look_at_secret
from stockyard.operations.clusters.phases import RUNNER as CLUSTER_RUNNER
from stockyard.operations.clusters.phases import start_following
from stockyard.operations.clusters.removal.expiry import look_at_expiry
from stockyard.operations.clusters.snapshots.snapshots import look_at_snapshots
from stockyard.operations.engine.keep import sweep_kept
from stockyard.operations.engine.sweep import sweep_operation
from stockyard.operations.node_claims.drift import compare
from stockyard.operations.node_claims.phases import RUNNER as CLAIM_RUNNER
from stockyard.operations.services import Services


def sweep_lease(services: Services, cluster: Cluster) -> str | None:
    """Undo a creation whose lease ran out before it was handed over, or finish an undo that was interrupted.

    ``cluster`` comes from an index and may be old: one that was taken over since is left alone.
    """
    return "undone" if undo(services, cluster) else None


def sweep_cluster(services: Services, cluster: Cluster) -> str | None:
    """Bring a cluster that nobody works on back to work, and begin what waits for it: a change, or tags. The
    deletion of one whose time ends is announced, and begins."""
    return (
        look_at_expiry(services, cluster)
        or look_at_secret(services, cluster)
        or sweep_operation(CLUSTER_RUNNER, services, cluster)
        or start_following(services, cluster.id)
        or look_at_snapshots(services, cluster.id)
    )


def sweep_kept_cluster(services: Services, cluster_id: str) -> str | None:
    """Remove a cluster's first machine that did not come up and was kept for long enough."""
    cluster = services.store.get(Cluster, cluster_id)
    return sweep_kept(CLUSTER_RUNNER, services, cluster) if cluster is not None else None


def sweep_kept_claim(services: Services, claim_id: str) -> str | None:
    """Remove a claim's machine that did not come up and was kept for long enough."""
    claim = services.store.get(NodeClaim, claim_id)
    return sweep_kept(CLAIM_RUNNER, services, claim) if claim is not None else None


def sweep_claim(services: Services, claim: NodeClaim, providers: Mapping[str, NodeProvider]) -> str | None:
    """Resume work on a claim without a worker, and compare its node with a new one of the provider; ``providers`` by
    id."""
    # Whether a workflow should be at work on it.
    if claim.deleting or claim.desired_power or (claim.phase == PENDING and claim.due_at is None):
        rested = services.seconds_since(claim.updated_at) >= services.settings.retry_deletion_seconds
        return sweep_operation(CLAIM_RUNNER, services, claim) if rested else None
    provider = providers.get(claim.placement.provider_id) if claim.placement else None
    return compare(services, provider, claim)
