"""Description of one phase, for a cluster's driver."""

from __future__ import annotations

from stockyard.domain.records import CloudAccount, Cluster
from stockyard.errors import CredentialsRevoked
from stockyard.lifecycle.change_phases import SNAPSHOT_POLICY
from stockyard.operations.engine.advance import Fence
from stockyard.operations.engine.ledger import Owner, StoreLedger
from stockyard.operations.machines.overlay import hub_slots
from stockyard.operations.services import Services
from stockyard.ports import CloudWork, ClusterDriver

MACHINE_PHASE = "control_plane"
"""The phase whose ledger lines are the first machine."""
_LINES_OF = {SNAPSHOT_POLICY: MACHINE_PHASE}
"""Rows that bring lines of another one to the settings."""


def cloud_work(
    services: Services, cluster: Cluster, phase: str, fence: Fence[Cluster]
) -> tuple[ClusterDriver, CloudWork]:
    """The driver of a cluster and what it is told about one phase.

    ``CredentialsRevoked`` when the cloud account is no longer registered.
    """
    account = services.store.get(CloudAccount, str(cluster.cloud_account_id))
    if account is None:
        raise CredentialsRevoked(f"Cloud account {cluster.cloud_account_id} is not registered any more.")
    driver = services.cluster_drivers[cluster.driver]
    ledger = StoreLedger(
        services, Owner.of_cluster(cluster, fence.operation_id, fence.attempt), _LINES_OF.get(phase, phase)
    )
    work = CloudWork(
        services.tenant,
        services.installation,
        cluster,
        account,
        ledger,
        services.clock.now(),
        fence.operation_id,
        hubs=hub_slots(services, cluster),
    )
    return driver, work
