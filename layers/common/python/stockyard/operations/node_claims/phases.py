"""The work of claims' phases: the node source's, and what is ours of a creation, a deletion and a switch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from stockyard.domain.nodes.node_types import ANY
from stockyard.domain.records import Cluster, Fact, NodeClaim, Placement
from stockyard.domain.values.states import DesiredPower
from stockyard.errors import (
    CapacityAwaited,
    Conflict,
    Fenced,
    InsufficientCapacity,
    NodeCouldNotBeProvisioned,
    StockyardError,
    VendorError,
    VendorNotFound,
    VendorQuotaExceeded,
    VendorRefused,
)
from stockyard.lifecycle.nodes.draining import grace_seconds
from stockyard.lifecycle.nodes.node_claim import MOVES, PENDING
from stockyard.lifecycle.nodes.node_commands import waits_for
from stockyard.lifecycle.nodes.node_phases import ENVIRONMENT_PHASE, MACHINE_PHASE, PROVISIONED, SLOWEST_SECONDS
from stockyard.lifecycle.procedure import Phase
from stockyard.operations.engine.advance import Fence, Loaded, advance
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.engine.quiesce import quiesce
from stockyard.operations.engine.run_phase import end_by, end_deletion
from stockyard.operations.engine.run_phases import run_phases
from stockyard.operations.engine.runner import Learned, Runner
from stockyard.operations.machines.attest import issue_token
from stockyard.operations.machines.boot import last_words
from stockyard.operations.machines.observe import facts_of, node_of, silence_seconds
from stockyard.operations.node_claims import environments as node_environments
from stockyard.operations.node_claims import launch_groups, machine_holds
from stockyard.operations.node_claims.delete import forgetting
from stockyard.operations.node_claims.deprovision import drain, freed_slot, leave, terminate
from stockyard.operations.node_claims.drift import as_launched
from stockyard.operations.node_claims.power import why_not
from stockyard.operations.node_claims.reservations import watch_end
from stockyard.operations.node_claims.usage import claim_usage
from stockyard.operations.node_claims.work import node_work
from stockyard.operations.node_providers.catalog import DRAIN, drain_seconds, limits_of, own_scope
from stockyard.operations.node_providers.catalog import load as load_catalog
from stockyard.operations.services import Services
from stockyard.ports import Outcome, Remove, Write
from stockyard.ports.clusters import TOKEN
from stockyard.ports.nodes import BLOCKER

LOOK_AGAIN, LOOK_LATE = 15, 60
"""Seconds until the next look at a machine whose vendor cannot tell when it is ready: at least, and at most."""
UNLIMITED = 2**40
"""Seconds that never pass: a drain that waits as long as it takes."""
FIRST_LOOK = 120
"""Seconds after its launch at which such a machine is looked at for the first time. Before that the word of the
cluster's agent ends the wait, see ``go_on``: each look is paid for."""

Work = Callable[[Services, NodeClaim, Fence[NodeClaim]], Outcome]


def _launch(services: Services, claim: NodeClaim, fence: Fence[NodeClaim]) -> Outcome:
    source, work = node_work(services, claim, MACHINE_PHASE, fence)
    if work.cluster is not None and source.attestation(work.provider) == TOKEN:
        work = replace(work, machine_token=issue_token(services, claim, fence))
    try:
        outcome = source.launch(work)
    except (VendorRefused, VendorQuotaExceeded) as refusal:
        _remember_refusal(services, claim, refusal)
        raise
    if not outcome.done:
        if blocker := outcome.facts.get(BLOCKER):
            advance(services, fence, lambda c, o: MOVES.note_blocker(c, o, blocker, services.now()))
        return outcome
    return Learned(True, outcome.message, facts=outcome.facts, fields=as_launched(services, work, outcome.facts))


def _remember_refusal(services: Services, claim: NodeClaim, refusal: VendorError) -> None:
    """Remember that the claim's type could not be launched, of its provider alone, so that for a while the next claim
    becomes another one, and for longer each time: whether the type is to blame is not known."""
    placed = claim.placement
    if services.unavailable_offerings is not None and placed is not None:
        offering = (placed.type.partition(".")[2], placed.capacity_type, ANY)
        reason = refusal.code or refusal.error_type
        scope = own_scope(placed.provider_id)
        now = services.clock.now()
        services.unavailable_offerings.remember(scope, [offering], reason, now, growing=True)


def _register(services: Services, claim: NodeClaim, fence: Fence[NodeClaim]) -> Outcome:
    """Whether the claim's node has joined: the cluster's agent says so, or its vendor knows, who is asked only when the
    agent has said nothing yet."""
    observed_node = node_of(facts_of(services, claim))
    if observed_node is not None:
        return _joined(str(observed_node["name"]))
    source, work = node_work(services, claim, MACHINE_PHASE, fence)
    machine = source.glance(work)
    if machine.state in ("absent", "gone"):
        raise NodeCouldNotBeProvisioned("The machine was ended before its node joined.")
    if machine.node_name:
        return _joined(machine.node_name)
    wait = _pause(services, claim) if machine.refresh is None else max(1, machine.refresh)
    return Outcome(False, "Waiting for the node to join.", wait_seconds=wait)


def _joined(node: str) -> Outcome:
    return Outcome(True, f"Node {node} has joined.", facts={"node_name": node})


def _pause(services: Services, claim: NodeClaim) -> int:
    """Seconds until the next look at a machine that boots: few boots are over before ``FIRST_LOOK``, and the longer one
    takes, the less matters how late its end is seen."""
    launch = next((c.last_transition_time for c in claim.conditions if c.type == PROVISIONED), claim.updated_at)
    age = int(services.seconds_since(launch))
    return FIRST_LOOK - age if age < FIRST_LOOK - LOOK_AGAIN else min(LOOK_LATE, max(LOOK_AGAIN, age // 4))


def _initialize(services: Services, claim: NodeClaim, fence: Fence[NodeClaim]) -> Outcome:
    """A node that was asked for switched off has joined first: only then its cluster knows it."""
    facts = facts_of(services, claim)
    observed_node = node_of(facts)
    needs = waits_for(claim, facts, observed_node) if observed_node is not None else None
    if observed_node is not None and needs:
        return Outcome(False, f"Waiting for node {observed_node['name']} {needs}.", wait_seconds=LOOK_AGAIN)
    if claim.power != "Off":
        return Outcome(True)
    return _switch(services, claim, "Off", fence)


def _power(services: Services, claim: NodeClaim, fence: Fence[NodeClaim]) -> Outcome:
    return _switch(services, claim, claim.desired_power, fence) if claim.desired_power else Outcome(True)


def _switch(services: Services, claim: NodeClaim, state: DesiredPower, fence: Fence[NodeClaim]) -> Outcome:
    """Switch the machine. Nobody comes here without a source that can, unless a release took that from its kind."""
    source, work = node_work(services, claim, MACHINE_PHASE, fence)
    if not source.switches:
        raise NodeCouldNotBeProvisioned(str(why_not(services, claim)))
    return source.power(work, state)


def _environment(services: Services, claim: NodeClaim, fence: Fence[NodeClaim]) -> Outcome:
    """The environment, unless the claim asks for a machine that is off, of a kind that switches none: then nothing is
    made."""
    cannot = why_not(services, claim) if claim.power == "Off" else None
    if cannot:
        raise NodeCouldNotBeProvisioned(f"The claim asks for a node that is off. {cannot}")
    return node_environments.ensure(services, claim, fence)


def _or_elsewhere(work: Work) -> Work:
    """The work of a creation. A capacity that was refused puts the claim back to the scheduler and is remembered for
    everybody: then this attempt is over, ``Fenced`` like any other that is."""

    def tried(services: Services, claim: NodeClaim, fence: Fence[NodeClaim]) -> Outcome:
        try:
            return work(services, claim, fence)
        except InsufficientCapacity as refusal:
            # What was intended for this attempt did not come about; a ledger that says so needs no provider any more.
            undone = terminate(services, claim, fence)
            if not undone.done:
                return undone
            _reschedule(services, fence, claim, refusal)
            raise Fenced("The claim waits for the scheduler again.") from refusal
        except VendorNotFound:
            # A subnet, an image or a profile that the environment names is gone: the next claim finds them anew.
            cluster = services.store.get(Cluster, claim.cluster_id) if claim.cluster_id else None
            if cluster is not None:
                node_environments.look_again(services, cluster)
            raise

    return tried


def _reschedule(services: Services, fence: Fence[NodeClaim], claim: NodeClaim, refusal: InsufficientCapacity) -> None:
    """Remember what was refused, give the slot back and let the scheduler look again. What only the account was
    refused is remembered of the claim's provider alone."""
    catalog = load_catalog(services)
    name = claim.type_ref.partition(".")[0]
    provider = catalog.providers.get(name)
    same_provider = provider is not None and claim.placement is not None and provider.id == claim.placement.provider_id
    scope = catalog.scopes.get(name) if same_provider else None
    if services.unavailable_offerings is not None and provider is not None and scope is not None:
        why, now = refusal.code or refusal.error_type, services.clock.now()
        shared = [offering for offering in refusal.refused if offering not in refusal.own]
        for offering_scope, offerings in ((scope, shared), (own_scope(provider.id), refusal.own)):
            services.unavailable_offerings.remember(offering_scope, offerings, why, now)
    reason, message, due_at = "InsufficientCapacity", f"{claim.type_ref} could not be had: {refusal.detail}", ""
    if isinstance(refusal, CapacityAwaited):
        reason, message, due_at = refusal.reason, refusal.detail, refusal.again_at
    advance(
        services,
        fence,
        lambda c, o: MOVES.reschedule(c, o, reason, message, services.now(), due_at),
        lambda c: freed_slot(services, c),
    )


def _end(
    services: Services,
    fence: Fence[NodeClaim],
    loaded: Loaded[NodeClaim],
    outcome: Outcome,
    name: str,
    extra: Callable[[NodeClaim], Sequence[Write]],
) -> None:
    claim, operation = loaded
    phase, fields = RUNNER.procedure(services, claim, operation.kind).phase(name), RUNNER.fields(outcome)
    advance(
        services,
        fence,
        lambda c, o: MOVES.end_phase(c, o, phase, outcome.message, services.now(), _as_counted(c, fields)),
        extra,
        loaded,
    )


def _as_counted(claim: NodeClaim, fields: Mapping[str, object]) -> Mapping[str, object]:
    """``fields`` with the placement's slot as the claim has it now: its type may have been limited meanwhile."""
    placement = fields.get("placement")
    if not isinstance(placement, Placement) or claim.placement is None:
        return fields
    counted = claim.placement.counted and claim.placement.type == placement.type
    return {**fields, "placement": replace(placement, counted=counted)}


def _end_environment(
    services: Services, fence: Fence[NodeClaim], loaded: Loaded[NodeClaim], outcome: Outcome
) -> Outcome:
    """Not done when the environment that the claim was to use is being removed just now."""
    environment = outcome.facts.get("environment", "")
    learned = Learned(True, outcome.message, fields={"environment_ref": environment} if environment else {})
    extra = [node_environments.in_use(environment)] if environment else []
    try:
        _end(services, fence, loaded, learned, ENVIRONMENT_PHASE, lambda _: extra)
    except Fenced:
        raise
    except Conflict:
        if not environment:
            raise
        wait = node_environments.LOOK_AGAIN
        return Outcome(False, "The environment is being removed.", wait_seconds=wait)
    return outcome


def _end_launch(services: Services, fence: Fence[NodeClaim], loaded: Loaded[NodeClaim], outcome: Outcome) -> Outcome:
    """A claim that became another type than was counted gives its slot back."""
    type_ref = loaded[0].type_ref
    became_another = outcome.facts.get("type", type_ref) != type_ref
    extra = partial(freed_slot, services) if became_another else lambda _: ()
    _end(services, fence, loaded, outcome, MACHINE_PHASE, extra)
    watch_end(services, [replace(loaded[0], reserved_until=outcome.facts.get("reserved_until"))])
    return outcome


def _removal(services: Services, claim: NodeClaim) -> list[Write]:
    """The removal of a claim's record, and with it of the name, the quota use, what was told of it, and the slot."""
    if launch_groups.of(services, claim) is not None:
        raise Conflict("The claim has not left the group that it was placed with.")
    facts = [Remove(Fact, f"{claim.id}/{name}") for name in facts_of(services, claim)]
    record = Remove(NodeClaim, claim.id, version=claim.version)
    holds = machine_holds.forgetting(services, claim)
    usage = claim_usage(services, claim)
    return [record, *forgetting(services, claim), *facts, *freed_slot(services, claim), *holds, *usage]


def _limit(services: Services, claim: NodeClaim, phase: Phase) -> int:
    """The stage's limit, or the longer one of the claim's provider. A phase outlasts the drain that it waits for."""
    if phase.name == DRAIN:
        grace = grace_seconds(claim, drain_seconds(services, claim))
        return UNLIMITED if grace is None else max(phase.limit_seconds, grace + 2 * silence_seconds(services))
    rules = {"launch": services.settings.launch_seconds, "register": services.settings.register_seconds}
    own = min(SLOWEST_SECONDS, limits_of(services, claim).get(phase.name, 0))
    return max(rules.get(phase.name, phase.limit_seconds), own)


def _console(services: Services, claim: NodeClaim, fence: Fence[NodeClaim]) -> str | None:
    if claim.placement is None or not lines_of(services, claim.id, MACHINE_PHASE):
        return None
    source, work = node_work(services, claim, MACHINE_PHASE, fence)
    return source.console(work)


def _power_in(outcome: Outcome) -> str:
    return outcome.facts.get("power", "")


RUNNER: Runner[NodeClaim] = Runner(
    NodeClaim,
    MOVES,
    remove=lambda services, claim, fence, _: terminate(services, claim, fence),
    actions={
        "environment": _or_elsewhere(_environment),
        "launch": _or_elsewhere(_launch),
        "register": _or_elsewhere(_register),
        "initialize": _or_elsewhere(_initialize),
        "power": _power,
        "settle": lambda services, claim, _: quiesce(RUNNER, services, claim),
        "drain": drain,
        "terminate": terminate,
        "release": leave,
    },
    ends={
        "environment": _end_environment,
        "launch": _end_launch,
        "initialize": end_by(lambda c, o, end, now: MOVES.become_available(c, o, "initialize", _power_in(end), now)),
        "power": end_by(lambda c, o, end, now: MOVES.end_power(c, o, "power", _power_in(end), now)),
        "release": end_deletion(MOVES, _removal),
    },
    fact_fields=frozenset({"machine_id", "node_name", "host_name"}),
    timed_out=NodeCouldNotBeProvisioned,
    failure_writes=freed_slot,
    last_words=last_words,
    console=_console,
    limit=_limit,
)
"""How operations on claims are run."""

AWAITED = ("register", "initialize")
"""The phases that the word of a cluster's agent ends. What it says decides them alone: no vendor is asked."""


def go_on(services: Services, claims: Iterable[NodeClaim]) -> None:
    """Do what waits for the agent of these claims: their nodes are news.

    Nothing comes before its time: a claim whose machine is still being made is left to its workflow, which looks again
    in any case, and so it is with whatever fails here.
    """
    for claim in claims:
        # To switch a machine off is a call to its vendor.
        if claim.phase != PENDING or claim.deleting or claim.power == "Off" or claim.operation_id is None:
            continue
        with suppress(StockyardError):
            run_phases(RUNNER, services, Fence.of(claim), AWAITED)
