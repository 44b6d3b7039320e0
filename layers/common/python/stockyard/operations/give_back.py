"""The end of a claim: stop what still provisions it, end the machine, give the place back, forget the record."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stockyard.domain import times
from stockyard.domain.declared_types import capacity_counter
from stockyard.domain.launch_groups import share
from stockyard.domain.records import Cluster, Fact, NodeClaim, NodeProvider
from stockyard.errors import Conflict
from stockyard.lifecycle import claim as lifecycle
from stockyard.lifecycle.loss import is_lost
from stockyard.lifecycle.node_commands import DELETE, DRAIN, done_fact
from stockyard.operations import launch_groups
from stockyard.operations.claims import TRIES, WORKFLOW_ACTOR, ClaimFence, change_writes, load
from stockyard.operations.delete_claim import forgetting
from stockyard.operations.ledger import lines_of
from stockyard.operations.node_work import node_work
from stockyard.operations.observe_cluster import facts_of, node_of
from stockyard.operations.services import Services
from stockyard.ports import Add, Outcome, Remove, Replace, Write

PROVISIONING = "provision_node"
DELETING = "delete_node"
LOOK_AGAIN = 15
GROUP_WAIT = 2
AGENT_SECONDS = 300
"""How long an agent that says nothing is waited for."""


def settle(services: Services, claim: NodeClaim) -> Outcome:
    """Stop a provisioning that still runs, and wait until none of its calls can make anything more.

    See ``delete_phases.settle``: the same for a claim.
    """
    if claim.execution is not None:
        services.workflows.stop(PROVISIONING, claim.execution)
        if services.workflows.running(PROVISIONING, claim.execution):
            return Outcome(False, "Waiting for the provisioning to stop.", wait_seconds=5)
    intents = [line.intended_at for line in lines_of(services, claim.id) if line.state == "intended"]
    if not intents:
        return Outcome(True)
    age = (services.clock.now() - times.from_text(max(intents))).total_seconds()
    left = math.ceil(services.rules.in_flight_seconds - age)
    if left <= 0:
        return Outcome(True)
    return Outcome(False, "Waiting for calls of the provisioning that may still be under way.", wait_seconds=left)


def drain(services: Services, claim: NodeClaim, _: ClaimFence) -> Outcome:
    """Wait until the cluster's agent has emptied the node. A node that no agent has seen, whose cluster is on its way
    out too, or whose machine is gone, is not drained; one that takes too long is ended all the same."""
    if is_lost(claim):
        return Outcome(True, "The machine is gone.")
    facts = facts_of(services, claim)
    if node_of(facts) is None or done_fact(claim, DRAIN) in facts or not _cluster_lives(services, claim):
        return Outcome(True)
    age = (services.clock.now() - times.from_text(claim.updated_at)).total_seconds()
    if age > services.rules.drain_seconds + AGENT_SECONDS:
        return Outcome(True, "The drain took too long.")
    return Outcome(False, "Waiting for the node to be drained.", wait_seconds=LOOK_AGAIN)


def leave(services: Services, claim: NodeClaim, _: ClaimFence) -> Outcome:
    """Wait until the agent has deleted the node of the machine that is gone; its silence holds nothing up for long."""
    facts = facts_of(services, claim)
    if node_of(facts) is None or done_fact(claim, DELETE) in facts or not _cluster_lives(services, claim):
        return Outcome(True)
    age = (services.clock.now() - times.from_text(claim.updated_at)).total_seconds()
    if age > AGENT_SECONDS:
        return Outcome(True, "The cluster's agent is silent.")
    return Outcome(False, "Waiting for the node to be deleted.", wait_seconds=LOOK_AGAIN)


def _cluster_lives(services: Services, claim: NodeClaim) -> bool:
    cluster = services.store.get(Cluster, claim.cluster_id) if claim.cluster_id else None
    return cluster is not None and cluster.status == "ready"


def terminate(services: Services, claim: NodeClaim, fence: ClaimFence) -> Outcome:
    """End the machine and what was made for it alone. A claim with an empty ledger has none, unless a call for it and
    others may be under way, or has made one that it has not taken yet."""
    group = launch_groups.of(services, claim)
    shared = group is not None and not share(group, claim.id).nothing
    if claim.placement is None or not (shared or lines_of(services, claim.id)):
        outcome = Outcome(True, "Nothing was made.")
    else:
        source, work = node_work(services, claim, "launch", fence)
        outcome = source.terminate(work)
    if outcome.done and group is not None and not launch_groups.leave(services, claim, group):
        return Outcome(False, "What is launched together with others changes just now.", wait_seconds=GROUP_WAIT)
    return outcome


def place_of(services: Services, claim: NodeClaim) -> Sequence[Write]:
    """The write that gives the claim's counted place back; none when its placement took none."""
    placed = claim.placement
    if placed is None or not placed.counted:
        return ()
    provider = services.store.get(NodeProvider, placed.provider_id)
    if provider is None:
        return ()
    return (Add(capacity_counter(provider, placed.type.removeprefix(f"{provider.name}.")), -1),)


def forget(services: Services, fence: ClaimFence) -> None:
    """Remove the record, the name, the quota use and the place in one transaction; operation and events stay."""
    for _ in range(TRIES):
        claim, operation = load(services, fence)
        left = lines_of(services, claim.id)
        if left:
            raise Conflict(f"{len(left)} resources are still on the ledger.")
        if launch_groups.of(services, claim) is not None:
            raise Conflict("The claim has not left the group that it was placed with.")
        change = lifecycle.finish_deletion(claim, operation, services.now())
        _, told, writes = change_writes(services, WORKFLOW_ACTOR, change)
        gone = Remove(NodeClaim, claim.id, version=claim.version)
        try:
            services.store.commit(
                gone,
                Replace(told),
                *forgetting(services, claim),
                *(Remove(Fact, f"{claim.id}/{name}") for name in facts_of(services, claim)),
                *place_of(services, claim),
                *writes,
            )
        except Conflict:
            continue
        return
    raise Conflict("The claim changes too often to be forgotten.")
