"""Machines in room that was bought for a time: their nodes leave in order before their cloud ends them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from stockyard.domain.nodes.node_types import CAPACITY_BLOCK
from stockyard.domain.records import NodeClaim
from stockyard.domain.values import times
from stockyard.errors import Conflict
from stockyard.lifecycle.nodes.interruption import RESERVATION, interrupt, leaves_at
from stockyard.lifecycle.nodes.node_phases import MACHINE_PHASE
from stockyard.operations.engine.advance import WORKFLOW_ACTOR, Fence
from stockyard.operations.engine.watch import watch
from stockyard.operations.node_claims.delete import give_back
from stockyard.operations.node_claims.lost_machines import MOST, has_machine
from stockyard.operations.node_claims.work import node_work
from stockyard.operations.services import Services
from stockyard.ports import Replace

ASK_BEFORE = timedelta(hours=2)
"""So long before its end a reservation is asked for again: until an hour before, its owner may have it last longer."""
LOOK_AGAIN = 60
"""Seconds until the next look at a node that should leave and could not be given back."""


def to_ask(claims: Iterable[NodeClaim], now: datetime) -> list[NodeClaim]:
    """The claims whose reservation nobody has asked for yet, or that is about to end; at most ``MOST``."""

    def is_asked(claim: NodeClaim) -> bool:
        return claim.reserved_until is not None and times.from_text(claim.reserved_until) > now + ASK_BEFORE

    of_blocks = (
        claim
        for claim in claims
        if has_machine(claim) and claim.placement is not None and claim.placement.capacity_type == CAPACITY_BLOCK
    )
    return [claim for claim in of_blocks if not is_asked(claim)][:MOST]


def ask(services: Services, claim_id: str) -> None:
    """Ask when the machine of the claim ends, and keep it."""
    claim = services.store.get(NodeClaim, claim_id)
    if claim is None or not has_machine(claim):
        return
    source, work = node_work(services, claim, MACHINE_PHASE, Fence.of(claim))
    reserved_until = source.ends_at(work)
    if reserved_until != claim.reserved_until:
        services.store.commit(Replace(replace(claim, reserved_until=reserved_until, version=claim.version + 1)))
        watch_end(services, [replace(claim, reserved_until=reserved_until)])


def watch_end(services: Services, claims: Iterable[NodeClaim]) -> None:
    """Have the cluster of ``claims`` looked at when the first of their nodes has to leave."""
    moments = [(moment, claim.cluster_id) for claim in claims if (moment := leaves_at(claim)) is not None]
    moment, cluster_id = min(moments, default=(services.clock.now(), ""))
    if cluster_id:
        seconds = int((moment - services.clock.now()).total_seconds())
        watch(services, cluster_id, max(seconds, LOOK_AGAIN), begin=True)


def leave_in_time(services: Services, claims: Iterable[NodeClaim]) -> int:
    """Give back the nodes whose machines end soon; the count. Pods leave as budgets allow until the end."""
    now, count = services.clock.now(), 0
    for claim in claims:
        moment = leaves_at(claim)
        if moment is None or moment > now:
            continue
        news = interrupt(claim, str(claim.reserved_until), services.now(), RESERVATION)
        if news is not None:
            # Somebody else changes it just now: the next look is in a minute.
            with suppress(Conflict):
                give_back(services, news[0], WORKFLOW_ACTOR, news[1])
                count += 1
    return count
