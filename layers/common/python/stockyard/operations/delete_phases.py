"""The phases of a deletion that are ours and not the provider's."""

from __future__ import annotations

from stockyard.domain.records import Cluster, Fact, Name
from stockyard.errors import Conflict
from stockyard.lifecycle import cluster as lifecycle
from stockyard.operations import cluster_secrets
from stockyard.operations.advance import TRIES, WORKFLOW_ACTOR, Fence, load
from stockyard.operations.ledger import lines_of
from stockyard.operations.services import Services
from stockyard.operations.tell import change_writes
from stockyard.ports import Add, Outcome, Remove, Replace

FACTS = ("reported_ready", "task_token", "bootstrapped")


def anything_made(services: Services, cluster: Cluster, phase: str) -> bool:
    """Whether a removal has to talk to the cloud at all. What a cluster's nodes made needs a network to stand in."""
    return bool(lines_of(services, cluster.id, None if phase == "leftovers" else phase))


def settle(services: Services, cluster: Cluster) -> Outcome:
    """Stop a provisioning that still runs. Its workers are fenced off already; this only ends the waiting."""
    if cluster.execution is None:
        return Outcome(True)
    services.workflows.stop("provision", cluster.execution)
    if services.workflows.running("provision", cluster.execution):
        return Outcome(False, "Waiting for the provisioning to stop.", wait_seconds=5)
    return Outcome(True)


def remove_client(services: Services, cluster: Cluster) -> Outcome:
    """Delete the Keycloak client, if it is this cluster's, and every secret."""
    services.identity.delete_client(client_id=cluster.client_id, owner=cluster.id)
    cluster_secrets.delete_all(services, cluster)
    return Outcome(True)


def forget(services: Services, fence: Fence) -> None:
    """Remove the record, the name and the quota use in one transaction; the operation and the events stay."""
    for _ in range(TRIES):
        cluster, operation = load(services, fence)
        left = lines_of(services, cluster.id)
        if left:
            raise Conflict(f"{len(left)} resources are still on the ledger.")
        change = lifecycle.finish_deletion(cluster, operation, services.now())
        _, told, writes = change_writes(services, WORKFLOW_ACTOR, change)
        try:
            services.store.commit(
                Remove(Cluster, cluster.id, version=cluster.version),
                Replace(told),
                Remove(Name, f"cluster/{cluster.name}"),
                Add("quota/clusters", -1),
                *(Remove(Fact, f"{cluster.id}/{name}") for name in FACTS),
                *writes,
            )
        except Conflict:
            continue
        return
    raise Conflict("The cluster changes too often to be forgotten.")
