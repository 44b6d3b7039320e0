"""The end of a claim: stop what still provisions it, end the machine, give the place back, forget the record."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stockyard.domain import times
from stockyard.domain.declared_types import capacity_counter
from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.errors import Conflict
from stockyard.lifecycle import claim as lifecycle
from stockyard.operations.claims import TRIES, WORKFLOW_ACTOR, ClaimFence, change_writes, load
from stockyard.operations.delete_claim import forgetting
from stockyard.operations.ledger import lines_of
from stockyard.operations.node_work import node_work
from stockyard.operations.services import Services
from stockyard.ports import Add, Outcome, Remove, Replace, Write

PROVISIONING = "provision_node"
DELETING = "delete_node"


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


def terminate(services: Services, claim: NodeClaim, fence: ClaimFence) -> Outcome:
    """End the machine and what was made for it alone. A claim with an empty ledger has none."""
    if claim.placement is None or not lines_of(services, claim.id):
        return Outcome(True, "Nothing was made.")
    source, work = node_work(services, claim, "launch", fence)
    return source.terminate(work)


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
        change = lifecycle.finish_deletion(claim, operation, services.now())
        _, told, writes = change_writes(services, WORKFLOW_ACTOR, change)
        gone = Remove(NodeClaim, claim.id, version=claim.version)
        try:
            services.store.commit(
                gone, Replace(told), *forgetting(services, claim), *place_of(services, claim), *writes
            )
        except Conflict:
            continue
        return
    raise Conflict("The claim changes too often to be forgotten.")
