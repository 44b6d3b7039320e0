"""The work of clusters' phases: the driver's, and what is ours of a creation and a deletion."""

from __future__ import annotations

from stockyard.domain.records import CloudAccount, Cluster, Fact, Name
from stockyard.errors import ClusterCouldNotBeDeployed, Conflict, CredentialsRevoked
from stockyard.lifecycle.cluster import MOVES
from stockyard.operations.clusters import nodes as cluster_nodes
from stockyard.operations.clusters import secrets as cluster_secrets
from stockyard.operations.clusters.await_report import await_report
from stockyard.operations.clusters.deploy import deploy
from stockyard.operations.engine.advance import TRIES, WORKFLOW_ACTOR, Fence, Loaded, advance, change_writes, load
from stockyard.operations.engine.ledger import Owner, StoreLedger, lines_of
from stockyard.operations.engine.quiesce import quiesce
from stockyard.operations.engine.runner import Runner
from stockyard.operations.machines.observe import OBSERVED
from stockyard.operations.services import Services
from stockyard.ports import Add, CloudWork, ClusterDriver, Outcome, Remove, Replace

FACTS = ("reported_ready", "task_token", "bootstrapped", OBSERVED)

_LOOKS_BEYOND_ITS_LINES = frozenset({"leftovers", "control_plane"})
"""Phases that also remove what the cluster's own nodes made, which no line names."""


class PhaseTimedOut(ClusterCouldNotBeDeployed):
    """A phase did not finish within its limit."""


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
    ledger = StoreLedger(services, Owner.of_cluster(cluster, fence.operation_id, fence.attempt), phase)
    work = CloudWork(
        services.tenant, services.installation, cluster, account, ledger, services.clock.now(), fence.operation_id
    )
    return driver, work


def _ensure(services: Services, cluster: Cluster, fence: Fence[Cluster], phase: str) -> Outcome:
    driver, work = cloud_work(services, cluster, phase, fence)
    return driver.ensure(phase, work)


def _remove(services: Services, cluster: Cluster, fence: Fence[Cluster], phase: str) -> Outcome:
    """The cloud is not asked where nothing was made. What a cluster's nodes made needs a network to stand in."""
    beyond = cluster.status == "deleting" and phase in _LOOKS_BEYOND_ITS_LINES
    if not lines_of(services, cluster.id, None if beyond else phase):
        return Outcome(True, "Nothing was made.")
    driver, work = cloud_work(services, cluster, phase, fence)
    return driver.remove(phase, work)


def _settle(services: Services, cluster: Cluster, fence: Fence[Cluster]) -> Outcome:
    outcome = quiesce(RUNNER, services, cluster)
    return cluster_nodes.release(services, cluster, fence.operation_id) if outcome.done else outcome


def _remove_client(services: Services, cluster: Cluster, _: Fence[Cluster]) -> Outcome:
    """Delete the Keycloak client, if it is this cluster's, and every secret."""
    services.identity.delete_client(client_id=cluster.client_id, owner=cluster.id)
    cluster_secrets.delete_all(services, cluster)
    return Outcome(True)


def _complete(services: Services, fence: Fence[Cluster], loaded: Loaded[Cluster], outcome: Outcome) -> Outcome:
    advance(services, fence, lambda c, o: MOVES.become_ready(c, o, "complete", services.now()), loaded=loaded)
    return outcome


def _end_change(services: Services, fence: Fence[Cluster], loaded: Loaded[Cluster], outcome: Outcome) -> Outcome:
    last = loaded[1].phases[-1].name
    advance(services, fence, lambda c, o: MOVES.end_change(c, o, last, services.now()), loaded=loaded)
    return outcome


def _forget(services: Services, fence: Fence[Cluster], _: Loaded[Cluster], outcome: Outcome) -> Outcome:
    """Remove the record, the name and the quota use in one transaction; the operation and the events stay."""
    for _try in range(TRIES):
        cluster, operation = load(services, fence)
        lines = lines_of(services, cluster.id)
        if lines:
            raise Conflict(f"{len(lines)} resources are still on the ledger.")
        change = MOVES.finish_deletion(cluster, operation, services.now())
        _subject, ended_operation, writes = change_writes(services, WORKFLOW_ACTOR, change)
        try:
            services.store.commit(
                Remove(Cluster, cluster.id, version=cluster.version),
                Replace(ended_operation),
                Remove(Name, f"cluster/{cluster.name}"),
                Add("quota/clusters", -1),
                *(Remove(Fact, f"{cluster.id}/{name}") for name in FACTS),
                *writes,
            )
        except Conflict:
            continue
        return outcome
    raise Conflict("The cluster changes too often to be forgotten.")


RUNNER: Runner[Cluster] = Runner(
    Cluster,
    MOVES,
    remove=_remove,
    ensure=_ensure,
    actions={"deploy": deploy, "settle": _settle, "client": _remove_client},
    ends={"complete": _complete, "changed": _end_change, "forget": _forget},
    fact_fields=frozenset({"endpoint", "instance_id", "certificate_authority"}),
    timed_out=PhaseTimedOut,
    awaits={"report": await_report},
    driver=lambda cluster: cluster.driver,
)
"""How operations on clusters are run."""
