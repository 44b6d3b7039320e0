"""A cloud announces that it takes a machine back: what is said of its claim. Pure, as ``node_claim``."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from stockyard.domain.records import NodeClaim
from stockyard.domain.values import times
from stockyard.domain.values.states import Truth
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.nodes.node_claim import FAILED, MOVES, shown_phase

INTERRUPTED = "Interrupted"
"""The condition of a claim whose machine its cloud announced to take back, or may soon."""
INTERRUPTION, REBALANCE = "SpotInterruption", "RebalanceRecommendation"
MAINTENANCE, RESERVATION = "ScheduledMaintenance", "ReservationEnds"
"""Its reasons: the cloud ends the machine at a moment that it named; or it may do so sooner than of others; or it
stops, restarts or retires it at a moment that may be weeks away; or the room that was bought for it is over."""
LEAVE_BEFORE = timedelta(minutes=12)
"""So long before the machine of a reservation ends its node begins to leave. Karpenter takes ten minutes; a look comes
once a minute, and may come late."""
LAST_SECONDS = 15
"""Before the machine ends: what a drain has not moved by then is deleted past its budgets, to end in order."""


def leaves_at(claim: NodeClaim) -> datetime | None:
    """Moment when the node begins to leave whose machine stands in room that was bought for a time; None for any other,
    and where it leaves already."""
    if claim.reserved_until is None or claim.deleting or claim.phase == FAILED:
        return None
    return times.from_text(claim.reserved_until) - LEAVE_BEFORE


def interrupt(
    claim: NodeClaim, ends_at: str, now: str, reason: str = INTERRUPTION
) -> tuple[NodeClaim, Transition] | None:
    """The cloud ends the machine at ``ends_at``. None when that is known, or when the claim has failed. The version
    stays: it is part of the change that gives the node back, or of none where that is under way."""
    if (claim.deleting and claim.ends_at is not None) or claim.phase == FAILED:
        return None
    why = ": the room that was bought for it is over" if reason == RESERVATION else ""
    text = f"Machine {claim.machine_id} is taken back by its cloud at {ends_at}{why}."
    marked = replace(claim, ends_at=ends_at, reason=reason, message=text)
    phase = shown_phase(claim)
    changed = MOVES.condition(marked, INTERRUPTED, "True", reason, text, now)
    return changed, MOVES.transition(phase, phase, reason, text)


def recommend(claim: NodeClaim, now: str) -> tuple[NodeClaim, Transition] | None:
    """The machine may be taken back sooner than others. None when that is known, or no matter any more."""
    text = f"The cloud of machine {claim.machine_id} may take it back soon."
    return _noted(claim, "Unknown", REBALANCE, text, now)


def schedule(claim: NodeClaim, begins_at: str, now: str) -> tuple[NodeClaim, Transition] | None:
    """The machine is stopped, restarted or retired from ``begins_at`` on, which says more than a recommendation. None
    when that is known, or no matter any more."""
    text = f"The cloud of machine {claim.machine_id} has scheduled maintenance of it for {begins_at}."
    return _noted(claim, "True", MAINTENANCE, text, now)


def _noted(claim: NodeClaim, status: Truth, reason: str, text: str, now: str) -> tuple[NodeClaim, Transition] | None:
    earlier = {part.reason for part in claim.conditions if part.type == INTERRUPTED}
    # What has a moment says more than that the machine may be taken at any time.
    says_more = reason == MAINTENANCE and earlier == {REBALANCE}
    if claim.deleting or claim.phase == FAILED or (earlier and not says_more):
        return None
    phase = shown_phase(claim)
    changed = MOVES.condition(MOVES.touch(claim, now), INTERRUPTED, status, reason, text, now)
    return changed, MOVES.transition(phase, phase, reason, text)


def is_interrupted(claim: NodeClaim) -> bool:
    """Whether the machine's cloud has said that it takes it back, or may soon."""
    return any(part.type == INTERRUPTED for part in claim.conditions)
