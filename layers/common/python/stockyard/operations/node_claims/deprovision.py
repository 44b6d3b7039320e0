"""The end of a claim's node: empty it, end the machine, give the place back."""

from __future__ import annotations

from collections.abc import Sequence

from stockyard.domain.declared_types import capacity_counter
from stockyard.domain.launch_groups import share
from stockyard.domain.records import Cluster, Fact, NodeClaim, NodeProvider
from stockyard.lifecycle.interruption import LAST_SECONDS
from stockyard.lifecycle.loss import is_lost
from stockyard.lifecycle.node_commands import DELETE, DRAIN, done_fact
from stockyard.operations.engine.advance import Fence
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.machines.observe import SILENT_SECONDS, facts_of, node_of, silence_seconds
from stockyard.operations.node_claims import launch_groups
from stockyard.operations.node_claims.work import node_work
from stockyard.operations.node_providers.catalog import drain_seconds
from stockyard.operations.services import Services
from stockyard.ports import Add, Outcome, Put, Write

LOOK_AGAIN = 15
GROUP_WAIT = 2


def drain(services: Services, claim: NodeClaim, _: Fence[NodeClaim]) -> Outcome:
    """Wait until the cluster's agent has emptied the node. A node that no agent has seen, whose cluster is on its way
    out too, or whose machine is gone, is not drained; one that takes too long is ended all the same."""
    if is_lost(claim):
        return Outcome(True, "The machine is gone.")
    # Of a machine that its cloud takes back nothing is left to move afterwards.
    silence = silence_seconds(services) if claim.ends_at is None else LAST_SECONDS
    most = drain_seconds(services, claim) + silence
    return _await_agent(services, claim, DRAIN, most, "The drain took too long.", "drained")


def leave(services: Services, claim: NodeClaim, _: Fence[NodeClaim]) -> Outcome:
    """Wait until the agent has deleted the node of the machine that is gone; its silence holds nothing up for long."""
    # An agent that was asked for the drain before comes often, if it comes at all.
    was_asked = done_fact(claim, DRAIN) in facts_of(services, claim)
    most = SILENT_SECONDS if was_asked else silence_seconds(services)
    return _await_agent(services, claim, DELETE, most, "The cluster's agent is silent.", "deleted")


def _await_agent(services: Services, claim: NodeClaim, kind: str, most: int, over: str, state: str) -> Outcome:
    facts = facts_of(services, claim)
    if node_of(facts) is None or done_fact(claim, kind) in facts or not _cluster_lives(services, claim):
        return Outcome(True)
    if services.seconds_since(claim.updated_at) > most:
        # as if it were done: the agent, if there is one, goes on with the next command
        services.store.commit(Put(Fact(f"{claim.id}/{done_fact(claim, kind)}", services.now(), services.now())))
        return Outcome(True, over)
    return Outcome(False, f"Waiting for the node to be {state}.", wait_seconds=LOOK_AGAIN)


def _cluster_lives(services: Services, claim: NodeClaim) -> bool:
    cluster = services.store.get(Cluster, claim.cluster_id) if claim.cluster_id else None
    return cluster is not None and cluster.status == "ready"


def terminate(services: Services, claim: NodeClaim, fence: Fence[NodeClaim]) -> Outcome:
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
