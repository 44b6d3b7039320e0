"""Nodes whose Node object somebody has deleted: it is said on their claims, and they end when their time is over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from stockyard.domain.records import NodeClaim
from stockyard.errors import Conflict
from stockyard.lifecycle.disruption import vanished
from stockyard.operations.disruption.fleet import View
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.engine.tell import tell
from stockyard.operations.fleet.state import Workload
from stockyard.operations.services import Services
from stockyard.ports import Replace


def with_vanished(view: View, claims: Sequence[NodeClaim], workload: Workload) -> View:
    """The view with the claims whose Node object is gone or back; it is looked at again when their time is over."""
    own = [claim for claim in claims if claim.pool in view.pools and vanished.is_looked_after(claim)]
    absent = [claim for claim in own if vanished.has_vanished(claim, workload.facts_of(claim), workload.observed_at)]
    gone = [claim for claim in absent if vanished.gone_since(claim) is None]
    returned = [c for c in own if vanished.gone_since(c) is not None and workload.facts_of(c) is not None]
    ended: list[NodeClaim] = []
    by_pool: defaultdict[str, list[NodeClaim]] = defaultdict(list)
    for claim in absent:
        by_pool[claim.pool].append(claim)
    for name, listed in by_pool.items():
        ended += vanished.to_end(listed, sum(claim.pool == name for claim in own), view.now)
    moments = [view.looks_at] if view.looks_at is not None else []
    moments += [moment for claim in absent if (moment := vanished.ends_at(claim)) is not None]
    if gone:
        moments.append(view.now + timedelta(seconds=vanished.REJOIN_SECONDS))
    return replace(view, gone=gone, returned=returned, vanished=ended, looks_at=min(moments, default=None))


def note_nodes(services: Services, view: View) -> None:
    """Say on claims that their Node object is gone, or there again. Who changed a claim meanwhile has it said later."""
    moves = [(claim, vanished.note_gone) for claim in view.gone]
    moves += [(claim, vanished.note_return) for claim in view.returned]
    for claim, move in moves:
        changed, transition = move(claim, services.now())
        changed = replace(changed, sequence=claim.sequence + 1)
        with suppress(Conflict):
            services.store.commit(Replace(changed), *tell(services, WORKFLOW_ACTOR, changed, transition))
