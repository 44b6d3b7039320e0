"""Until when the drain of a claim's node waits for pods that cannot go. Pure, as ``lifecycle.nodes.node_claim``."""

from __future__ import annotations

from datetime import datetime, timedelta

from stockyard.domain.records import NodeClaim
from stockyard.domain.values import durations, times
from stockyard.lifecycle.nodes.interruption import LAST_SECONDS


def grace_seconds(claim: NodeClaim, usual: int) -> int | None:
    """Seconds for which the deletion of the claim waits for pods; None for as long as it takes. ``usual`` is for a
    claim that says nothing."""
    return durations.seconds(claim.termination_grace_period) if claim.termination_grace_period else usual


def drain_deadline(claim: NodeClaim, usual: int) -> datetime | None:
    """Deadline by which the last pod of the claim's node has to be gone, whatever holds it; None: never.

    It counts from the first request of the deletion. Who deletes it may bring it forward, and a cloud that takes the
    machine back does.
    """
    begin = times.from_text(claim.deletion_timestamp or claim.updated_at)
    grace = grace_seconds(claim, usual)
    ends = [] if grace is None else [begin + timedelta(seconds=grace)]
    if claim.drain_until is not None:
        ends.append(times.from_text(claim.drain_until))
    if claim.ends_at is not None:
        ends.append(times.from_text(claim.ends_at) - timedelta(seconds=LAST_SECONDS))
    return max(begin, min(ends)) if ends else None
