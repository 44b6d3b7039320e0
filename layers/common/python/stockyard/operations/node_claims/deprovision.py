"""The end of a claim's node: empty it, end the machine, give its slot back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from stockyard.domain.nodes.declared_types import capacity_counter
from stockyard.domain.nodes.launch_groups import share
from stockyard.domain.records import Cluster, Fact, NodeClaim, NodeProvider
from stockyard.domain.values import times
from stockyard.lifecycle.nodes.draining import drain_deadline
from stockyard.lifecycle.nodes.interruption import LAST_SECONDS
from stockyard.lifecycle.nodes.machine_gone import is_lost
from stockyard.lifecycle.nodes.node_claim import MOVES
from stockyard.lifecycle.nodes.node_commands import DELETE, DRAIN, HOLDERS, done_fact
from stockyard.operations.engine.advance import Fence, advance
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.machines import overlay
from stockyard.operations.machines.observe import SILENT_SECONDS, facts_of, last_post, node_of, silence_seconds
from stockyard.operations.node_claims import launch_groups
from stockyard.operations.node_claims.work import node_work
from stockyard.operations.node_providers.catalog import drain_seconds
from stockyard.operations.services import Services
from stockyard.ports import Add, Outcome, Put, Write

LOOK_AGAIN, LOOK_SOON, LOOK_LATE = 15, 60, 300
"""Seconds until the next look at what the agent does: at first, and at most with and without a deadline."""
AT_ONCE = timedelta(seconds=2)
"""A post of that much later than the deletion was made with it in hand."""
GROUP_WAIT = 2


def drain(services: Services, claim: NodeClaim, fence: Fence[NodeClaim]) -> Outcome:
    """Wait until the cluster's agent has emptied the node. A node that no agent has seen, whose cluster is on its way
    out too, or whose machine is gone, is not drained; one that is not empty long after its deadline is ended all the
    same. Without a deadline it waits as long as it takes."""
    facts = facts_of(services, claim)
    if is_lost(claim) or not _cluster_lives(services, claim):
        return Outcome(True, "The machine is gone." if is_lost(claim) else "")
    if node_of(facts) is None and not _is_without_node(services, claim):
        return Outcome(False, "Waiting for the agent to say whether there is a node.", wait_seconds=LOOK_AGAIN)
    if node_of(facts) is None or done_fact(claim, DRAIN) in facts:
        return Outcome(True, "The node is empty." if node_of(facts) else "")
    deadline, now = drain_deadline(claim, drain_seconds(services, claim)), services.clock.now()
    # Of a machine that its cloud takes back nothing is left to move afterwards.
    silence = silence_seconds(services) if claim.ends_at is None else LAST_SECONDS
    if deadline is not None and now > deadline + timedelta(seconds=silence):
        # as if it were done: the agent, if there is one, goes on with the next command
        services.store.commit(Put(Fact(f"{claim.id}/{done_fact(claim, DRAIN)}", services.now(), services.now())))
        return Outcome(True, "The drain took too long.")
    until = f"until {times.to_text(deadline)} at the latest" if deadline is not None else "for as long as it takes"
    text = f"The node is being drained; pods may wait {until}."
    reason, message = ("DrainHeld", f"Pods wait: {facts[HOLDERS]}.") if facts.get(HOLDERS) else ("Draining", text)
    advance(services, fence, lambda c, o: MOVES.note_drain(c, o, reason, message, services.now()))
    return Outcome(False, "Waiting for the node to be drained.", wait_seconds=_pause(services, claim, deadline))


def _pause(services: Services, claim: NodeClaim, deadline: datetime | None) -> int:
    """Seconds until the next look at a drain: each one is paid for, and some drains wait for days."""
    age = services.seconds_since(claim.deletion_timestamp or claim.updated_at)
    return max(LOOK_AGAIN, min(int(age) // 20, LOOK_LATE if deadline is None else LOOK_SOON))


def _is_without_node(services: Services, claim: NodeClaim) -> bool:
    """Whether nothing of the claim can be a node: nothing was made, or the agent, which tells of nodes whose claims are
    worked on, has come since the deletion began and has seen none. What an agent has seen as a node before stays one
    however long it is silent, where the drain has no end."""
    post = last_post(services, claim.cluster_id)
    if post is None or not lines_of(services, claim.id):
        return True
    begin = times.from_text(claim.deletion_timestamp or claim.updated_at)
    silent_since = begin + timedelta(seconds=silence_seconds(services) if claim.ends_at is None else LAST_SECONDS)
    return times.from_text(post) > begin + AT_ONCE or services.clock.now() > silent_since


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
        # First: nobody is to send anything to it, and its cluster's agent is told while that comes often.
        overlay.release(services, work.cluster, claim.id)
        outcome = source.terminate(work)
    if outcome.done and group is not None and not launch_groups.leave(services, claim, group):
        return Outcome(False, "What is launched together with others changes just now.", wait_seconds=GROUP_WAIT)
    return outcome


def freed_slot(services: Services, claim: NodeClaim) -> Sequence[Write]:
    """The write that gives the claim's counted slot back; none when its placement took none."""
    placed = claim.placement
    if placed is None or not placed.counted:
        return ()
    provider = services.store.get(NodeProvider, placed.provider_id)
    if provider is None:
        return ()
    return (Add(capacity_counter(provider, placed.type.removeprefix(f"{provider.name}.")), -1),)
