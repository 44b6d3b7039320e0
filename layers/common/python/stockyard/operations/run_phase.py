"""One phase of a workflow, once: look at the world, do at most one kind of thing, record what was done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from stockyard.domain import times
from stockyard.domain.records import CloudAccount, Cluster, Operation
from stockyard.errors import ClusterCouldNotBeDeployed, CredentialsRevoked, Fenced, NotYetVisible
from stockyard.lifecycle import cluster as lifecycle
from stockyard.lifecycle import phases
from stockyard.lifecycle.change import Change
from stockyard.lifecycle.operation import phase_of
from stockyard.operations import cluster_nodes, delete_phases, deploy_cluster
from stockyard.operations.advance import Fence, advance, load
from stockyard.operations.ledger import Owner, StoreLedger
from stockyard.operations.services import Services
from stockyard.ports import CloudWork, ClusterProvider, Outcome

HIDDEN_WAIT = 10
"""Seconds until the next look at what a cloud does not show yet."""


class PhaseTimedOut(ClusterCouldNotBeDeployed):
    """A phase did not finish within its limit."""


@dataclass(frozen=True, slots=True)
class Step:
    """What the workflow is told: go on, or come again after ``wait`` seconds."""

    done: bool
    wait: int
    message: str = ""


def cloud_work(services: Services, cluster: Cluster, phase: str, fence: Fence) -> tuple[ClusterProvider, CloudWork]:
    """The provider of a cluster and what it is told about one phase.

    ``CredentialsRevoked`` when the cloud account or its role is no longer registered.
    """
    account = services.store.get(CloudAccount, str(cluster.cloud_account_id))
    if account is None or not account.attributes.get("role_arn"):
        raise CredentialsRevoked(f"Cloud account {cluster.cloud_account_id} has no role any more.")
    provider = services.providers[cluster.provider]
    ledger = StoreLedger(services, Owner.of_cluster(cluster, fence.operation_id, fence.attempt), phase)
    work = CloudWork(
        services.tenant, services.installation, cluster, account, ledger, services.clock.now(), fence.operation_id
    )
    return provider, work


def run_phase(services: Services, fence: Fence, phase: str) -> Step:
    """Run one phase of the operation behind ``fence``.

    Raises ``Fenced`` for a stale attempt, retryable vendor errors as they are, and any other error for a phase
    that failed for good. What the cloud only does not show yet is waited for.
    """
    now = services.now()
    cluster = advance(services, fence, lambda c, o: lifecycle.begin_phase(c, o, phase, now))
    operation = load(services, fence)[1]
    record = phase_of(operation, phase)
    if record.state in ("succeeded", "skipped"):
        return Step(True, 0)
    if operation.status != "running":
        # An execution that began late: whoever closed the operation has said that nothing comes of it.
        raise Fenced("The operation is over.")
    if phase == "complete":
        advance(services, fence, lambda c, o: lifecycle.become_ready(c, o, services.now()))
        return Step(True, 0)
    if phase == "forget":
        delete_phases.forget(services, fence)
        return Step(True, 0)
    try:
        outcome = _work(services, cluster, operation, phase, fence)
    except NotYetVisible as hidden:
        # Every new thing may be hidden for a while: the document's few retries would not last for a whole phase.
        outcome = Outcome(False, hidden.detail, wait_seconds=HIDDEN_WAIT)
    if not outcome.done:
        return _not_yet(services, fence, phase, record.started_at or now, outcome)
    _record_done(services, fence, phase, outcome)
    return Step(True, 0, outcome.message)


def _work(services: Services, cluster: Cluster, operation: Operation, phase: str, fence: Fence) -> Outcome:
    if phase == "deploy":
        return deploy_cluster.deploy(services, cluster)
    if phase == "settle":
        outcome = delete_phases.settle(services, cluster)
        return cluster_nodes.release(services, cluster, fence.operation_id) if outcome.done else outcome
    if phase == "client":
        return delete_phases.remove_client(services, cluster)
    creating = operation.kind == phases.CREATE_CLUSTER
    if not creating and not delete_phases.anything_to_remove(services, cluster, phase):
        return Outcome(True, "Nothing was made.")
    provider, work = cloud_work(services, cluster, phase, fence)
    return provider.ensure(phase, work) if creating else provider.remove(phase, work)


def _not_yet(services: Services, fence: Fence, phase: str, started_at: str, outcome: Outcome) -> Step:
    age = (services.clock.now() - times.from_text(started_at)).total_seconds()
    limit = phases.LIMIT_SECONDS[phase]
    if age > limit:
        raise PhaseTimedOut(f"Phase {phase} did not finish within {limit} s: {outcome.message}")
    advance(services, fence, lambda c, o: lifecycle.note_phase(c, o, phase, outcome.message, services.now()))
    return Step(False, outcome.wait_seconds, outcome.message)


_FACT_FIELDS = frozenset({"endpoint", "instance_id", "certificate_authority"})


def _record_done(services: Services, fence: Fence, phase: str, outcome: Outcome) -> None:
    known: Mapping[str, str] = {name: value for name, value in outcome.facts.items() if name in _FACT_FIELDS}
    skipped = outcome.facts.get("skipped") == "true"

    def decide(cluster: Cluster, operation: Operation) -> Change | None:
        change = lifecycle.end_phase(cluster, operation, phase, outcome.message, services.now(), skipped=skipped)
        if change is None:
            return None
        return replace(change, cluster=replace(change.cluster, **known)) if known else change  # type: ignore[arg-type]

    advance(services, fence, decide)
