"""The legal moves of a node claim: pure functions from (records, what was seen, now) to a change.

::

    Pending ──bind──> Pending ──machine joined──> Available ──┐
       ▲                 │ │                        │         ├──> deleting ──> gone
       │                 │ │                   machine gone   │
       │                 │ │                        ▼         │
       └──capacity────── ┘ └──failed for good──> Failed ──────┘
          refused

``now`` is RFC 3339 text. Nothing here reads a clock or a store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from stockyard.domain.nodes.records import PASSED_OVER
from stockyard.domain.records import NodeClaim, Operation, PhaseRecord, Placement
from stockyard.domain.values.conditions import Condition
from stockyard.domain.values.states import DesiredPower
from stockyard.errors import IllegalTransition
from stockyard.lifecycle.change import Change, Failure, PhaseEnd, Transition
from stockyard.lifecycle.nodes import node_phases as phases
from stockyard.lifecycle.nodes.drift import AS_LAUNCHED, AS_LAUNCHED_TEXT
from stockyard.lifecycle.operation import OVER, Moves, operation_started, phase_of, with_phase
from stockyard.lifecycle.procedure import Procedure

PENDING: Final = "Pending"
AVAILABLE: Final = "Available"
FAILED: Final = "Failed"
DELETING = "Deleting"
"""What events call a claim on its way out; its phase stays what it was."""

NOT_TO_BE_HAD = "could not be had when the machine was made"
"""Why a source that tries its options in their order took a later one."""
ADOPTED, ADOPTED_TEXT = "Adopted", "The claim was made for a node that its group has made by itself."
"""Why a claim is there that neither a person nor a pod has asked for."""


def shown_phase(claim: NodeClaim) -> str:
    """The phase as events name it."""
    return DELETING if claim.deleting else claim.phase


def launched(placement: Placement, facts: Mapping[str, str]) -> Placement:
    """The placement as the launch made it true: which of the options it became, and where.

    One that became another type than was counted takes no slot any more.
    """
    name, capacity_type = facts.get("type", placement.type), facts.get("capacity_type", placement.capacity_type)
    option = next((o for o in placement.options if (o.type, o.capacity_type) == (name, capacity_type)), None)
    zones = (facts["zone"],) if facts.get("zone") else placement.zones
    counted = placement.counted and name == placement.type
    launch = replace(placement, type=name, capacity_type=capacity_type, zones=zones, counted=counted)
    if option is None:
        return launch
    vendor_reasons: dict[str, str] = json.loads(facts.get(PASSED_OVER) or "{}")
    cheaper_types = [o.type for o in placement.options if o.cost < option.cost and o.type != name]
    passed_over = {name: vendor_reasons.get(name, NOT_TO_BE_HAD) for name in cheaper_types}
    return replace(launch, usd_hour=option.usd_hour, cost=option.cost, passed_over=passed_over)


class NodeClaimMoves(Moves[NodeClaim]):
    """Moves of claims alone, and their part in the moves of every operation."""

    about, noun, deleting = "NodeClaim", "claim", DELETING
    gone_condition, leaving_condition = phases.DESTROYED, phases.DESTROYED
    leaving_text, gone_text = "The node is being given back.", "The node is gone."

    def shown_status(self, subject: NodeClaim) -> str:
        return shown_phase(subject)

    def up_to_date(self, subject: NodeClaim, operation: Operation, now: str) -> Operation:
        """The operation of a placed claim with its scheduling recorded as done; see ``bind``."""
        if operation.kind != phases.CREATE_NODE or subject.placement is None:
            return operation
        if phase_of(operation, phases.SCHEDULE).state in OVER:
            return operation
        done: dict[str, object] = {"state": "succeeded", "ended_at": subject.placement.decided_at}
        done |= {"message": f"Placed on {subject.placement.type}.", "attempt": operation.attempt}
        changed = with_phase(operation, phases.SCHEDULE, now, started_at=subject.created_at, **done)
        return replace(changed, version=operation.version)

    def apply_phase_end(self, subject: NodeClaim, end: PhaseEnd, now: str) -> tuple[NodeClaim, tuple[Transition, ...]]:
        if end.phase.name == phases.MACHINE_PHASE:
            text = end.message or "The machine runs."
            subject = self.condition(subject, phases.PROVISIONED, "True", "Launched", text, now)
            subject = self.condition(subject, phases.NOT_DRIFTED, "True", AS_LAUNCHED, AS_LAUNCHED_TEXT, now)
            return subject, (self.transition(subject.phase, subject.phase, "Provisioned", text),)
        if end.phase.name == phases.DRAIN and end.message:
            subject = self.condition(subject, phases.DRAINED, "True", "Drained", end.message, now)
            return subject, (self.transition(DELETING, DELETING, "Drained", end.message),)
        if end.phase.name == "register":
            text = f"Node {subject.node_name} has joined."
            subject = self.condition(subject, phases.JOINED, "True", "Joined", text, now)
            return subject, (self.transition(subject.phase, subject.phase, "Joined", text),)
        return subject, ()

    def failed(self, subject: NodeClaim, failure: Failure, now: str) -> tuple[NodeClaim, str]:
        """A switch that failed leaves the node what it is; of a creation whose machine is undone the slot is given
        back."""
        error = failure.error
        if failure.procedure.kind == phases.POWER_NODE:
            text = f"Power: {subject.desired_power} failed: {error.cause}"
            return self.touch(subject, now, desired_power=None), text
        placement = subject.placement
        if failure.undone and placement is not None:
            placement = replace(placement, counted=False)
        reason = {"phase": FAILED, "reason": error.error_type, "message": error.cause}
        refused = error.phase == phases.MACHINE_PHASE and error.cause_type in phases.LAUNCH_REFUSALS
        subject = self.touch(subject, now, due_at=None, placement=placement, launch_refused=refused, **reason)
        condition = failure.procedure.phase(error.phase).condition
        subject = self.condition(subject, condition, "False", error.error_type, error.cause, now)
        return subject, failure.message

    def leaving(self, subject: NodeClaim, now: str, **fields: object) -> NodeClaim:
        first = subject.deletion_timestamp or now
        return self.touch(subject, now, deleting=True, due_at=None, deletion_timestamp=first, **fields)

    def end_kept(self, subject: NodeClaim, operation: Operation, now: str) -> Change[NodeClaim]:
        """See ``Moves.end_kept``; the slot is given back with it."""
        change = super().end_kept(subject, operation, now)
        placement = subject.placement and replace(subject.placement, counted=False)
        return replace(change, subject=replace(change.subject, placement=placement))

    def is_leaving(self, subject: NodeClaim) -> bool:
        return subject.deleting

    # --- moves of claims only ----------------------------------------------------------------------------------------

    def accept(self, draft: NodeClaim, operation: Operation, now: str, *, adopting: bool = False) -> Change[NodeClaim]:
        """A new claim waits for the scheduler, due at once. ``adopting``: its machine is there already."""
        conditions = tuple(Condition(name, "Unknown", "Pending", "Not yet.", now) for name in phases.READINESS)
        reason, message = (ADOPTED, ADOPTED_TEXT) if adopting else ("Pending", "")
        claim = replace(
            draft,
            phase=PENDING,
            reason=reason,
            message=message,
            conditions=conditions,
            due_at=now,
            operation_id=operation.id,
        )
        accepted = self.transition(None, PENDING, "Accepted", "The claim waits for a node type.")
        if adopting:
            accepted = self.transition(None, PENDING, ADOPTED, ADOPTED_TEXT)
        return Change(claim, operation, (accepted, operation_started(operation)))

    def bind(self, claim: NodeClaim, placement: Placement, now: str) -> tuple[NodeClaim, Transition]:
        """The scheduler found a node type: the work starts. ``IllegalTransition`` unless the claim waits for one.

        The operation is left alone, so that many claims fit one transaction; the first phase to run says for it that
        the scheduling is done.
        """
        if claim.due_at is None or claim.deleting or claim.phase != PENDING or claim.operation_id is None:
            raise IllegalTransition("The claim does not wait for a node type.")
        text = f"Placed on {placement.type}."
        claim = self.touch(
            claim,
            now,
            placement=replace(placement, attempt=claim.attempt),
            type_ref=placement.type,
            due_at=None,
            reason="",
            message="",
            execution=f"{claim.operation_id}-{claim.attempt}",
        )
        claim = self.condition(claim, phases.SCHEDULED, "True", "Placed", text, now)
        return claim, self.transition(PENDING, PENDING, "Scheduled", text)

    def wait(self, claim: NodeClaim, reason: str, message: str, now: str) -> tuple[NodeClaim, Transition] | None:
        """No node type fits for now, and what is told of it; None when that was already said. It stays due."""
        if claim.reason == reason and claim.message == message:
            return None
        claim = self.touch(claim, now, reason=reason, message=message)
        claim = self.condition(claim, phases.SCHEDULED, "False", reason, message, now)
        return claim, self.transition(PENDING, PENDING, reason, message)

    def reschedule(
        self, claim: NodeClaim, operation: Operation, reason: str, message: str, now: str, due_at: str = ""
    ) -> Change[NodeClaim]:
        """Let the claim wait for the next cheapest, as the next attempt, since what was placed cannot be had. It is
        looked at again at once, or at ``due_at``."""
        attempt = claim.attempt + 1
        records = tuple(PhaseRecord(record.name, attempt=record.attempt) for record in operation.phases)
        operation = replace(operation, phases=records, attempt=attempt, continuation=0, updated_at=now)
        operation = replace(operation, version=operation.version + 1)
        claim = self.touch(
            claim,
            now,
            attempt=attempt,
            last_refusal=message,
            placement=None,
            type_ref="",
            due_at=max(now, due_at),
            reason=reason,
            message=message,
        )
        claim = self.condition(claim, phases.SCHEDULED, "False", reason, message, now)
        return Change(claim, operation, (self.transition(PENDING, PENDING, reason, message),))

    def note_blocker(self, claim: NodeClaim, operation: Operation, message: str, now: str) -> Change[NodeClaim] | None:
        """The launch goes on, and its vendor says what is in its way; None when that was said before."""
        if operation.status != "running" or (claim.reason, claim.message) == (phases.HINDERED, message):
            return None
        claim = self.touch(claim, now, reason=phases.HINDERED, message=message)
        claim = self.condition(claim, phases.PROVISIONED, "False", phases.HINDERED, message, now)
        transition = self.transition(PENDING, PENDING, phases.HINDERED, message)
        return Change(claim, replace(operation, version=operation.version + 1), (transition,))

    def become_available(
        self, claim: NodeClaim, operation: Operation, phase: str, power: str, now: str
    ) -> Change[NodeClaim] | None:
        """The last phase of a creation; None when it was done before. ``power`` as it was observed, if it was."""
        if claim.phase == AVAILABLE or operation.status != "running":
            return None
        claim = self.touch(claim, now, phase=AVAILABLE, reason="", message="", power_observed=power)
        text = f"Node {claim.node_name} is available."
        return self._success(claim, operation, phase, self.transition(PENDING, AVAILABLE, "Available", text), now)

    def start_power(
        self,
        claim: NodeClaim,
        current: Operation | None,
        operation: Operation,
        procedure: Procedure,
        desired: DesiredPower,
        now: str,
    ) -> Change[NodeClaim]:
        """A person switches the machine. ``IllegalTransition`` unless the node is there and nothing else works on
        it."""
        if claim.phase != AVAILABLE or claim.deleting:
            state = "being deleted" if claim.deleting else claim.phase
            raise IllegalTransition(f"The claim is {state}; only an available node can be switched.")
        if current is not None and current.status == "running":
            raise IllegalTransition(f"Operation {current.id} is still at work on the node.")
        claim = self.touch(claim, now, **self._fence(claim, operation), desired_power=desired)
        requested = self.transition(AVAILABLE, AVAILABLE, "PowerRequested", f"Power: {desired}.")
        return Change(claim, operation, (requested, operation_started(operation)), workflow=procedure)

    def end_power(
        self, claim: NodeClaim, operation: Operation, phase: str, observed: str, now: str
    ) -> Change[NodeClaim] | None:
        """The machine is as it was wished to be; None when that was already recorded."""
        if operation.status != "running":
            return None
        desired = claim.desired_power
        lasting = claim.power if desired is None or desired == "Reboot" else desired
        text = f"Power: {desired} is done."
        claim = self.touch(claim, now, power=lasting, power_observed=observed, desired_power=None)
        transition = self.transition(AVAILABLE, AVAILABLE, "PowerChanged", text)
        return self._success(claim, operation, phase, transition, now)

    def note_drain(
        self, claim: NodeClaim, operation: Operation, reason: str, message: str, now: str
    ) -> Change[NodeClaim] | None:
        """The node is being drained, or pods hold it; None when that was said before, or when the operation has
        ended."""
        last = next((part for part in claim.conditions if part.type == phases.DRAINED), None)
        if operation.status != "running" or (last is not None and (last.reason, last.message) == (reason, message)):
            return None
        claim = self.condition(self.touch(claim, now), phases.DRAINED, "False", reason, message, now)
        operation = replace(operation, updated_at=now, version=operation.version + 1)
        return Change(claim, operation, (self.transition(DELETING, DELETING, reason, message),))

    def shorten_drain(self, claim: NodeClaim, until: str, now: str) -> tuple[NodeClaim, Transition]:
        """Let pods wait until then and no longer, as somebody who deletes the claim asks."""
        text = f"Pods of the node may wait until {until}, and no longer."
        return self.touch(claim, now, drain_until=until), self.transition(DELETING, DELETING, "DrainShortened", text)

    def delete_at_once(
        self,
        claim: NodeClaim,
        current: tuple[Operation, Procedure] | None,
        operation: Operation,
        procedure: Procedure,
        now: str,
    ) -> Change[NodeClaim]:
        """A deletion that is over as soon as it is asked for, without an execution: nothing was made yet."""
        started = self.start_deletion(claim, current, operation, procedure, now)
        finished = self.finish_deletion(started.subject, started.operation, now)
        deletion_requested, operation_started = started.transitions
        claim_deleted, operation_ended = finished.transitions
        done = replace(finished.operation, version=started.operation.version)
        return Change(
            finished.subject,
            done,
            (deletion_requested, claim_deleted, operation_started, operation_ended),
            closed=started.closed,
        )


MOVES = NodeClaimMoves()
