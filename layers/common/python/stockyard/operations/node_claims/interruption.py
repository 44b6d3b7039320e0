"""A claim's machine tells that its cloud takes it back: the node is given back at once, while it still runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from stockyard.domain.records import NodeClaim
from stockyard.domain.values import times
from stockyard.lifecycle.nodes import interruption as lifecycle
from stockyard.lifecycle.nodes.node_claim import MOVES
from stockyard.operations.engine.advance import until_written
from stockyard.operations.engine.tell import tell
from stockyard.operations.engine.watch import watch
from stockyard.operations.machines.join import proven_claim
from stockyard.operations.node_claims.delete import give_back, is_member
from stockyard.operations.services import Services
from stockyard.ports import Replace

INTERRUPTION, MAINTENANCE = "interruption", "maintenance"
MOST_NOTICE = timedelta(minutes=15)
"""Clouds tell minutes ahead. A later moment is taken for this one: the clock of a machine may be wrong."""


@until_written("claim changes too often to be interrupted")
def report_interruption(
    services: Services, claim_id: str, proof: Mapping[str, Any], kind: str, moment: str
) -> tuple[NodeClaim, bool]:
    """The claim, and whether the report was news: it may come several times, also when the node is given back.

    ``kind``: ``interruption``, and the machine ends at ``moment``; ``maintenance``, and it may do so from then on; or
    ``rebalance``. Raises as ``join_machine`` does for a proof.
    """
    claim = proven_claim(services, claim_id, proof)
    now = services.now()
    actor = f"node:{claim.name}"
    if kind == INTERRUPTION:
        latest = services.clock.now() + MOST_NOTICE
        news = lifecycle.interrupt(claim, times.to_text(min(times.from_text(moment), latest)), now)
        # A member of a control plane is a voter of etcd: it is replaced in order, once its machine is gone.
        if is_member(claim):
            news = None if claim.ends_at is not None else news
        elif news and not claim.deleting:
            return give_back(services, news[0], actor, news[1]), True
        # Of a node that is given back already the drain has to be over before its machine is.
        news = (MOVES.touch(news[0], now), news[1]) if news else None
    elif kind == MAINTENANCE:
        news = lifecycle.schedule(claim, moment, now)
    else:
        news = lifecycle.recommend(claim, now)
    if news is None:
        return claim, False
    changed = replace(news[0], sequence=news[0].sequence + 1)
    services.store.commit(Replace(changed), *tell(services, actor, changed, news[1]))
    if changed.cluster_id and not changed.deleting:
        # It may leave as soon as its replacement is there.
        watch(services, changed.cluster_id, begin=True)
    return changed, True
