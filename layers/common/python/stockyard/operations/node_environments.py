"""Environments: what a provider sets up once for a cluster, before its first node there."""

from __future__ import annotations

from dataclasses import replace

from stockyard.domain.conditions import Condition, with_condition
from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment
from stockyard.errors import Conflict
from stockyard.operations.claims import ClaimFence
from stockyard.operations.every import every
from stockyard.operations.ledger import lines_of
from stockyard.operations.node_work import environment_id, environment_work, node_work
from stockyard.operations.services import Services
from stockyard.ports import Create, Outcome, Remove, Replace

PROVISIONED = "Provisioned"


def ensure(services: Services, claim: NodeClaim, fence: ClaimFence) -> Outcome:
    """The environment of the claim's cluster and provider, made by the first claim that needs it."""
    _, work = node_work(services, claim, "environment", fence)
    if work.cluster is None:
        return Outcome(True, "A node of no cluster needs no environment.")
    if work.environment is not None and work.environment.phase == "Available":
        return Outcome(True, facts={"environment": work.environment.id})
    environment = work.environment or _begun(services, claim, work.provider.id, work.provider.name)
    source, setting_up = environment_work(services, environment, work.cluster, fence.operation_id)
    outcome = source.prepare(setting_up)
    if outcome.done:
        _available(services, environment, outcome)
    return replace(outcome, facts={"environment": environment.id})


def clear_all(services: Services, cluster: Cluster, session: str) -> Outcome:
    """Remove every environment of a cluster that is being deleted, what was set up first and then the record."""
    for environment in list(every(services.store, NodeEnvironment, where={"cluster_id": cluster.id})):
        if lines_of(services, environment.id):
            source, work = environment_work(services, environment, cluster, session)
            outcome = source.clear(work)
            if not outcome.done:
                return outcome
        services.store.commit(Remove(NodeEnvironment, environment.id))
    return Outcome(True)


def _begun(services: Services, claim: NodeClaim, provider_id: str, provider_name: str) -> NodeEnvironment:
    now = services.now()
    pending = Condition(PROVISIONED, "Unknown", "InProgress", "The environment is being set up.", now)
    environment = NodeEnvironment(
        id=environment_id(claim.cluster_id, provider_id),
        cluster_id=claim.cluster_id,
        provider_id=provider_id,
        provider_name=provider_name,
        created_at=now,
        updated_at=now,
        properties=claim.properties,
        conditions=(pending,),
    )
    try:
        services.store.commit(Create(environment))
    except Conflict:
        found = services.store.get(NodeEnvironment, environment.id)
        return found or environment
    return environment


def _available(services: Services, environment: NodeEnvironment, outcome: Outcome) -> None:
    now = services.now()
    done = Condition(PROVISIONED, "True", "Provisioned", outcome.message or "The environment is there.", now)
    changed = replace(
        environment,
        phase="Available",
        conditions=with_condition(environment.conditions, done),
        outputs={**environment.outputs, **outcome.facts},
        updated_at=now,
        version=environment.version + 1,
    )
    try:
        services.store.commit(Replace(changed))
    except Conflict:
        # Another claim's worker said so first.
        return
