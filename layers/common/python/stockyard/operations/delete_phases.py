"""The phases of a deletion that are ours and not the provider's."""

from __future__ import annotations

import math

from stockyard.domain import times
from stockyard.domain.records import Cluster, Fact, Name
from stockyard.errors import Conflict
from stockyard.lifecycle import cluster as lifecycle
from stockyard.operations import cluster_secrets
from stockyard.operations.advance import TRIES, WORKFLOW_ACTOR, Fence, load
from stockyard.operations.ledger import lines_of
from stockyard.operations.observe_cluster import OBSERVED
from stockyard.operations.services import Services
from stockyard.operations.tell import change_writes
from stockyard.ports import Add, Outcome, Remove, Replace

FACTS = ("reported_ready", "task_token", "bootstrapped", OBSERVED)


_LOOKS_BEYOND_ITS_LINES = frozenset({"leftovers", "control_plane"})
"""Phases that also remove what the cluster's own nodes made, which no line names."""


def anything_to_remove(services: Services, cluster: Cluster, phase: str) -> bool:
    """Whether a removal has to talk to the cloud at all. What a cluster's nodes made needs a network to stand in."""
    return bool(lines_of(services, cluster.id, None if phase in _LOOKS_BEYOND_ITS_LINES else phase))


def settle(services: Services, cluster: Cluster) -> Outcome:
    """Stop a provisioning that still runs, and wait until none of its calls can make anything more.

    The fence refuses every new intent, but a worker that had one may still make its call, and the cloud may hide
    what came of it. Only then do the later phases see all there is. A cluster without open intents waits for nothing.
    """
    if cluster.execution is not None:
        services.workflows.stop("provision", cluster.execution)
        if services.workflows.running("provision", cluster.execution):
            return Outcome(False, "Waiting for the provisioning to stop.", wait_seconds=5)
    left = _in_flight_seconds(services, cluster)
    if left > 0:
        return Outcome(False, "Waiting for calls of the provisioning that may still be under way.", wait_seconds=left)
    return Outcome(True)


def _in_flight_seconds(services: Services, cluster: Cluster) -> int:
    """Seconds until what the youngest open intent may have led to must be visible; 0 when it is."""
    intents = [line.intended_at for line in lines_of(services, cluster.id) if line.state == "intended"]
    if not intents:
        return 0
    age = (services.clock.now() - times.from_text(max(intents))).total_seconds()
    return max(0, math.ceil(services.rules.in_flight_seconds - age))


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
