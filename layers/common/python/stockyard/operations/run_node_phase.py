"""One phase of a claim's workflow, once: look at the world, do at most one kind of thing, record what was done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stockyard.domain import times
from stockyard.domain.records import NodeClaim, Operation, Placement
from stockyard.errors import Conflict, Fenced, InsufficientCapacity, NodeCouldNotBeProvisioned, NotYetVisible
from stockyard.lifecycle import claim as lifecycle
from stockyard.lifecycle import node_phases as phases
from stockyard.lifecycle.node_commands import waits_for
from stockyard.lifecycle.operation import phase_of
from stockyard.operations import give_back, node_environments
from stockyard.operations.claims import ClaimFence, Known, advance, load
from stockyard.operations.compare_drift import as_launched
from stockyard.operations.node_catalog import load as load_catalog
from stockyard.operations.node_work import node_work
from stockyard.operations.observe_cluster import facts_of, node_of
from stockyard.operations.run_phase import HIDDEN_WAIT, Step
from stockyard.operations.services import Services
from stockyard.ports import Outcome, Write

LOOK_AGAIN = 15
"""Seconds until the next look at a machine whose vendor cannot tell when it is ready."""

_FACT_FIELDS = frozenset({"machine_id", "node_name"})


def run_node_phase(services: Services, fence: ClaimFence, phase: str) -> Step:
    """Do the phase. ``done`` when it is finished now or was before; otherwise come again after ``wait`` seconds.

    Raises ``Fenced`` when the attempt is over, a retryable ``VendorError`` for the workflow to retry, another error
    for a phase that failed for good. A capacity that was refused puts the claim back to the scheduler and is
    remembered for everybody: then this attempt is over, ``Fenced`` like any other that is.
    """
    claim, operation = known = load(services, fence)
    if phase_of(operation, phase).state in ("succeeded", "skipped"):
        return Step(True, 0)
    if operation.status != "running":
        return Step(True, 0)
    try:
        outcome, learned = _work(services, claim, phase, fence)
    except NotYetVisible as hidden:
        outcome, learned = Outcome(False, hidden.detail, wait_seconds=HIDDEN_WAIT), {}
    except InsufficientCapacity as refusal:
        if operation.kind != phases.CREATE_NODE:
            raise
        # What was intended for this attempt did not come about; a ledger that says so needs no provider any more.
        undone = give_back.terminate(services, claim, fence)
        if not undone.done:
            return _not_yet(services, fence, operation, phase, undone)
        _place_again(services, fence, claim, refusal)
        raise Fenced("The claim waits for the scheduler again.") from refusal
    if not outcome.done:
        return _not_yet(services, fence, operation, phase, outcome)
    if phase == "release":
        give_back.forget(services, fence)
    elif phase == "power":
        observed = outcome.facts.get("power", "")
        advance(services, fence, lambda c, o: lifecycle.end_power(c, o, observed, services.now()), known=known)
    elif phase == "initialize":
        power = outcome.facts.get("power", "")
        advance(services, fence, lambda c, o: lifecycle.become_available(c, o, power, services.now()), known=known)
    elif not _ended(services, fence, known, phase, outcome, learned):
        gone = Outcome(False, "The environment is being removed.", wait_seconds=node_environments.LOOK_AGAIN)
        return _not_yet(services, fence, operation, phase, gone)
    return Step(True, 0, outcome.message)


def _ended(
    services: Services, fence: ClaimFence, known: Known, phase: str, outcome: Outcome, learned: Mapping[str, object]
) -> bool:
    """Record the end of a phase. False when the environment that the claim was to use is being removed just now."""
    claim = known[0]
    fields = {**_fields(phase, outcome.facts), **learned}
    became_another = outcome.facts.get("type", claim.type_ref) != claim.type_ref
    environment = str(fields.get("environment_ref", ""))

    def extra(current: NodeClaim) -> list[Write]:
        back = give_back.place_of(services, current) if became_another else ()
        return [*back, *([node_environments.in_use(environment)] if environment else ())]

    try:
        advance(
            services,
            fence,
            lambda c, o: lifecycle.end_phase(c, o, phase, outcome.message, services.now(), _as_counted(c, fields)),
            extra,
            known,
        )
    except Fenced:
        raise
    except Conflict:
        if not environment:
            raise
        return False
    return True


def _as_counted(claim: NodeClaim, fields: Mapping[str, object]) -> Mapping[str, object]:
    """``fields`` with the placement's place as the claim has it now: its type may have been limited meanwhile."""
    placement = fields.get("placement")
    if not isinstance(placement, Placement) or claim.placement is None:
        return fields
    counted = claim.placement.counted and claim.placement.type == placement.type
    return {**fields, "placement": replace(placement, counted=counted)}


def _work(services: Services, claim: NodeClaim, phase: str, fence: ClaimFence) -> tuple[Outcome, Mapping[str, object]]:
    """What became of it, and fields of the claim that a launch has decided."""
    if phase == phases.MACHINE_PHASE:
        source, work = node_work(services, claim, phase, fence)
        outcome = source.launch(work)
        return outcome, as_launched(source, work, outcome.facts) if outcome.done else {}
    if phase == "power":
        source, work = node_work(services, claim, phases.MACHINE_PHASE, fence)
        return source.power(work, claim.power_wish), {}
    if phase == "settle":
        return give_back.settle(services, claim), {}
    doing = _DOING.get(phase)
    return (doing(services, claim, fence) if doing is not None else Outcome(True)), {}


def _registered(services: Services, claim: NodeClaim, fence: ClaimFence) -> Outcome:
    """Whether the claim's node has joined: its vendor may know, else the cluster's agent says so."""
    source, work = node_work(services, claim, phases.MACHINE_PHASE, fence)
    machine = source.look(work)
    if machine.state in ("absent", "gone"):
        raise NodeCouldNotBeProvisioned("The machine was ended before its node joined.")
    seen = node_of(facts_of(services, claim))
    node = machine.node_name or (str(seen["name"]) if seen else "")
    if node:
        return Outcome(True, f"Node {node} has joined.", facts={"node_name": node})
    wait = LOOK_AGAIN if machine.refresh is None else max(1, machine.refresh)
    return Outcome(False, "Waiting for the node to join.", wait_seconds=wait)


def _initialized(services: Services, claim: NodeClaim, fence: ClaimFence) -> Outcome:
    """A node that was asked for switched off has joined first: only then its cluster knows it."""
    facts = facts_of(services, claim)
    seen = node_of(facts)
    needs = waits_for(claim, facts, seen) if seen is not None else ""
    if seen is not None and needs:
        return Outcome(False, f"Waiting for node {seen['name']} {needs}.", wait_seconds=LOOK_AGAIN)
    if claim.power != "Off":
        return Outcome(True)
    source, work = node_work(services, claim, phases.MACHINE_PHASE, fence)
    return source.power(work, "Off")


_DOING = {
    "environment": node_environments.ensure,
    "register": _registered,
    "initialize": _initialized,
    "drain": give_back.drain,
    "terminate": give_back.terminate,
    "release": give_back.leave,
}


def _fields(phase: str, facts: Mapping[str, str]) -> dict[str, object]:
    """What a phase learned, as fields of the claim."""
    fields: dict[str, object] = {name: value for name, value in facts.items() if name in _FACT_FIELDS}
    if phase == phases.ENVIRONMENT_PHASE and facts.get("environment"):
        fields["environment_ref"] = facts["environment"]
    return fields


def _not_yet(services: Services, fence: ClaimFence, operation: Operation, phase: str, outcome: Outcome) -> Step:
    record = phase_of(operation, phase)
    begun = record.started_at if record.attempt == operation.attempt else None
    age = (services.clock.now() - times.from_text(begun)).total_seconds() if begun else 0.0
    limit = limit_seconds(services, phase)
    if age > limit:
        raise NodeCouldNotBeProvisioned(f"Phase {phase} did not finish within {limit} s: {outcome.message}")
    advance(services, fence, lambda c, o: lifecycle.note_phase(c, o, phase, outcome.message, services.now()))
    return Step(False, outcome.wait_seconds, outcome.message)


def limit_seconds(services: Services, phase: str) -> int:
    """How long a phase may take; launch and register are settings of the stage."""
    chosen = {"launch": services.rules.launch_seconds, "register": services.rules.register_seconds}
    return chosen.get(phase, phases.LIMIT_SECONDS[phase])


def _place_again(services: Services, fence: ClaimFence, claim: NodeClaim, refusal: InsufficientCapacity) -> None:
    """Remember what was refused, give the place back and let the scheduler look again."""
    catalog = load_catalog(services)
    name = claim.type_ref.partition(".")[0]
    provider = catalog.providers.get(name)
    theirs = provider is not None and claim.placement is not None and provider.id == claim.placement.provider_id
    scope = catalog.scopes.get(name) if theirs else None
    if services.scarcity is not None and scope is not None and refusal.refused:
        services.scarcity.remember(scope, refusal.refused, refusal.code or refusal.error_type, services.clock.now())
    message = f"{claim.type_ref} could not be had: {refusal.detail}"
    advance(
        services,
        fence,
        lambda c, o: lifecycle.place_again(c, o, "InsufficientCapacity", message, services.now()),
        lambda c: give_back.place_of(services, c),
    )
