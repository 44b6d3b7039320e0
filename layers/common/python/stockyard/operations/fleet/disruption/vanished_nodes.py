"""Nodes whose Node object somebody has deleted, as the look of disruption has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from stockyard.domain.records import NodeClaim
from stockyard.lifecycle.disruption import vanished
from stockyard.operations.fleet.disruption.fleet import View
from stockyard.operations.fleet.state import Workload


def with_vanished(view: View, claims: Sequence[NodeClaim], workload: Workload) -> View:
    """The view with what is to be noted of Node objects and with the claims whose time to join again is over; it is
    looked at again when that of others is."""
    own = [claim for claim in claims if claim.pool in view.pools and vanished.is_looked_after(claim)]
    notes = [note for claim in own if (note := workload.noted(claim, view.now)) is not None]
    absent = [
        claim
        for claim in own
        if vanished.gone_since(claim) is not None
        and vanished.has_vanished(claim, workload.facts_of(claim), workload.true_at)
    ]
    by_pool: defaultdict[str, list[NodeClaim]] = defaultdict(list)
    for claim in absent:
        by_pool[claim.pool].append(claim)
    ended_claims: list[NodeClaim] = []
    for name, listed in by_pool.items():
        ended_claims += vanished.to_end(listed, sum(claim.pool == name for claim in own), view.now)
    moments = [view.looks_at] if view.looks_at is not None else []
    moments += [moment for claim in absent if (moment := vanished.ends_at(claim)) is not None]
    if notes:
        moments.append(view.now + timedelta(seconds=vanished.REJOIN_SECONDS))
    misses = any(workload.misses(claim, view.now) for claim in own)
    if misses:
        moments.append(view.now + timedelta(seconds=vanished.REPORT_SECONDS))
    return replace(view, notes=notes, misses=misses, vanished=ended_claims, looks_at=min(moments, default=None))
