"""The sweep of records: undo expired leases, retry blocked deletions, close operations whose workflow is lost."""

from __future__ import annotations

from stockyard.domain.records import Cluster
from stockyard.operations.clusters.phases import RUNNER
from stockyard.operations.clusters.undo_acceptance import undo
from stockyard.operations.engine.sweep import NOTHING, sweep_operation
from stockyard.operations.services import Services

UNDONE = "undone"


def sweep_lease(services: Services, cluster: Cluster) -> str:
    """Undo a creation whose lease ran out before it was handed over, or finish an undo that was interrupted.

    ``cluster`` comes from an index and may be old: one that was taken over since is left alone.
    """
    return UNDONE if undo(services, cluster) else NOTHING


def sweep_cluster(services: Services, cluster_id: str) -> str:
    """Bring a cluster that nobody works on back to work. Says what was done."""
    cluster = services.store.get(Cluster, cluster_id)
    return sweep_operation(RUNNER, services, cluster) if cluster is not None else NOTHING
