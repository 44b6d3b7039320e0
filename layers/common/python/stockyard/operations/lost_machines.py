"""Nodes whose machine was ended by somebody else: reclaimed spot capacity, or a person in the cloud's console.

A sweep lists the machines that are there anyway. A node whose machine is not among them is asked for by itself, and
only the answer to that counts: a list may be late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.errors import Conflict
from stockyard.lifecycle import claim as lifecycle
from stockyard.lifecycle import loss
from stockyard.lifecycle.node_phases import MACHINE_PHASE
from stockyard.operations import give_back
from stockyard.operations.claims import WORKFLOW_ACTOR, ClaimFence, claim_writes
from stockyard.operations.node_work import node_work
from stockyard.operations.services import Services
from stockyard.ports import Replace, Tagged

MOST = 50
"""Machines that one sweep asks for in one tenant; another one asks for the others."""


@dataclass(slots=True)
class Shown:
    """The machines that a sweep has found, by the cloud account or node provider that it could look at as a whole."""

    _machines: dict[str, Set[str]] = field(default_factory=dict)

    def at(self, place: str, things: Iterable[Tagged]) -> None:
        """Everything that is at a place."""
        self._machines[place] = {thing.vendor_id for thing in things}

    def lacks(self, provider: NodeProvider, machine_id: str) -> bool:
        """Whether the provider's place was looked at and the machine is not there."""
        found = self._machines.get(place_of(provider))
        return found is not None and machine_id not in found


def account_place(account_id: str) -> str:
    """The place of everything in a cloud account."""
    return f"account/{account_id}"


def place_of(provider: NodeProvider) -> str:
    """Where the machines of a provider are: in its cloud account, else in the provider itself."""
    number = (provider.spec.get(provider.kind) or {}).get("cloudAccount")
    return account_place(str(number)) if number is not None else provider.id


def has_machine(claim: NodeClaim) -> bool:
    """Whether the claim's machine should be there, and nobody is at work on it."""
    return claim.phase == lifecycle.AVAILABLE and not claim.deleting and not claim.power_wish


def missing(
    claims: Iterable[NodeClaim], providers: Mapping[str, NodeProvider], shown: Shown, sweep: int
) -> Sequence[NodeClaim]:
    """The claims whose machine was not found, at most ``MOST``; ``providers`` by id. Of more, ``sweep`` (a number that
    differs from one sweep to the next) says which: those that are there all the same must not hide the others."""
    found = []
    for claim in claims:
        provider = providers.get(claim.placement.provider_id) if claim.placement else None
        if provider is not None and shown.lacks(provider, claim.machine_id):
            found.append(claim)
    first = sweep * MOST % len(found) if len(found) > MOST else 0
    return (found[first:] + found[:first])[:MOST]


def note(services: Services, claim_id: str) -> bool:
    """Ask for one claim's machine, and say so on the claim when it is gone. True when that was news."""
    claim = services.store.get(NodeClaim, claim_id)
    if claim is None or not has_machine(claim):
        return False
    fence = ClaimFence(claim.id, str(claim.operation_id), claim.attempt)
    source, work = node_work(services, claim, MACHINE_PHASE, fence)
    if source.look(work).state not in ("absent", "gone"):
        return False
    changed, what = loss.lose(claim, services.now())
    changed = replace(changed, sequence=changed.sequence + 1)
    told = claim_writes(services, WORKFLOW_ACTOR, changed, what)
    try:
        services.store.commit(Replace(changed), *give_back.place_of(services, claim), *told)
    except Conflict:
        return False
    return True
