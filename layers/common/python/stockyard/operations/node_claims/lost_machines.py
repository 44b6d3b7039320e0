"""Nodes whose machine was ended by somebody else: reclaimed spot capacity, or a person in the cloud's console.

A sweep lists the machines that are there anyway. A node whose machine is not among them is asked for by itself, and
only the answer to that counts: a list may be late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.errors import Conflict
from stockyard.lifecycle.nodes import machine_gone
from stockyard.lifecycle.nodes.node_claim import AVAILABLE
from stockyard.lifecycle.nodes.node_phases import MACHINE_PHASE
from stockyard.operations.cloud_accounts.of_provider import account_number
from stockyard.operations.engine.advance import WORKFLOW_ACTOR, Fence
from stockyard.operations.engine.tell import tell
from stockyard.operations.node_claims import deprovision as give_back
from stockyard.operations.node_claims.work import node_work
from stockyard.operations.services import Services
from stockyard.ports import Replace

MOST = 50
"""Machines that one sweep asks for in one tenant; another one asks for the others."""


def account_scope(account_id: str) -> str:
    """The scope of everything in a cloud account."""
    return f"account/{account_id}"


def scope_of(services: Services, provider: NodeProvider) -> str:
    """Scope of the machines of a provider: in its cloud account, else in the provider itself."""
    number = account_number(services, provider)
    return account_scope(number) if number is not None else provider.id


def has_machine(claim: NodeClaim) -> bool:
    """Whether the claim's machine should be there, and nobody is at work on it."""
    return claim.phase == AVAILABLE and not claim.deleting and not claim.desired_power


def missing(
    claims: Iterable[NodeClaim], providers: Mapping[str, NodeProvider], machine_ids: Set[str], sweep: int
) -> Sequence[NodeClaim]:
    """The claims whose machine is not among ``machine_ids``, everything that a look at the scope of ``providers`` (by
    id) has found; at most ``MOST``. Of more, ``sweep`` (a number that differs from one sweep to the next) says which:
    those that are there all the same must not hide the others."""
    lost_claims = [
        claim
        for claim in claims
        if has_machine(claim)
        and claim.placement
        and claim.placement.provider_id in providers
        and claim.machine_id not in machine_ids
    ]
    first = sweep * MOST % len(lost_claims) if len(lost_claims) > MOST else 0
    return (lost_claims[first:] + lost_claims[:first])[:MOST]


def note(services: Services, claim_id: str) -> bool:
    """Ask for one claim's machine, and say so on the claim when it is gone. True when that was news."""
    claim = services.store.get(NodeClaim, claim_id)
    if claim is None or not has_machine(claim):
        return False
    source, work = node_work(services, claim, MACHINE_PHASE, Fence.of(claim))
    if source.look(work).state not in ("absent", "gone"):
        return False
    changed, transition = machine_gone.lose(claim, services.now())
    changed = replace(changed, sequence=changed.sequence + 1)
    events = tell(services, WORKFLOW_ACTOR, changed, transition)
    try:
        services.store.commit(Replace(changed), *give_back.freed_slot(services, claim), *events)
    except Conflict:
        return False
    return True
