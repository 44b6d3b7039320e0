"""Switch the machine of an available node on, off, or off and on."""

from __future__ import annotations

from typing import Any

from stockyard.domain.records import NodeClaim, NodeProvider, Operation
from stockyard.domain.values import ids
from stockyard.domain.values.states import DesiredPower
from stockyard.errors import IllegalTransition
from stockyard.lifecycle.change import Change
from stockyard.lifecycle.nodes.node_claim import MOVES
from stockyard.lifecycle.nodes.node_phases import POWER_NODE
from stockyard.lifecycle.operation import new_operation
from stockyard.operations.engine.advance import change_writes, until_written
from stockyard.operations.engine.find import find_claim
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace


@until_written("claim changes too often to be switched")
def power_claim(services: Services, id_or_name: str, state: DesiredPower, actor: str) -> NodeClaim:
    """The claim with the operation that brings ``state`` about: ``On``, ``Off`` or ``Reboot``.

    Raises ``NotFound``, ``IllegalTransition``, also of a kind that switches no machines; asked again for what is being
    done, it points to the same operation.
    """
    claim = find_claim(services, id_or_name)
    change = _switching(services, claim, state, actor)
    if change is None:
        return claim
    changed, operation, writes = change_writes(services, actor, change)
    services.store.commit(Replace(changed), Create(operation), *writes)
    return changed


_DONE = {"On": "switched on", "Off": "switched off", "Reboot": "restarted"}


def plan_power(services: Services, claim: NodeClaim, state: DesiredPower, actor: str) -> dict[str, Any]:
    """The parts of a plan that say what :func:`power_claim` would do. Raises as it does."""
    if _switching(services, claim, state, actor) is None:
        return {"verdict": f"Operation {claim.operation_id} does so already."}
    billed = {"pointer": "/state", "detail": "A machine that is off may still be billed."}
    return {
        "verdict": f"The machine of node claim {claim.name} would be {_DONE[state]}.",
        "warnings": [billed] if state == "Off" else [],
    }


def why_not(services: Services, claim: NodeClaim) -> str | None:
    """Reason why the claim's machine cannot be switched, by the kind of its provider; None when it can, and for a claim
    that has no provider yet."""
    placed = claim.placement
    provider = services.store.get(NodeProvider, placed.provider_id) if placed is not None else None
    source = services.node_sources.get(provider.kind) if provider is not None else None
    if provider is None or source is None or source.switches:
        return None
    return f"Machines of node provider {provider.name} are of kind {provider.kind}, which switches none on or off."


def _switching(services: Services, claim: NodeClaim, state: DesiredPower, actor: str) -> Change[NodeClaim] | None:
    """The claim whose machine begins to be switched; None where that is being done."""
    current = services.store.get(Operation, claim.operation_id) if claim.operation_id else None
    if current is not None and current.status == "running" and claim.desired_power == state:
        return None
    if cannot := why_not(services, claim):
        raise IllegalTransition(cannot)
    now, procedure = services.now(), services.procedure(POWER_NODE)
    operation = new_operation(services.new_id(ids.OPERATION), procedure, claim, actor, now)
    return MOVES.start_power(claim, current, operation, procedure, state, now)
