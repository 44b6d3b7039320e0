"""Binds claims that are about to be made to zones of their pools."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from stockyard.domain.pools.records import Pool
from stockyard.domain.records import NodeClaim
from stockyard.domain.values.requirements import ZONE, Requirements
from stockyard.errors import Conflict
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.pools.pool import later_than
from stockyard.lifecycle.pools.spread import claims_to_move, next_zones, zone_requirement
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.engine.tell import tell
from stockyard.operations.node_claims.cluster_claims import claims_of
from stockyard.operations.services import Services
from stockyard.ports import Replace

MOST_OFTEN = 60
"""Seconds for which a claim stays bound to a zone that has no room either, before it is bound to the next one."""


def move_claims(services: Services, pool: Pool, claims: Sequence[NodeClaim], going: Collection[str]) -> bool:
    """Bind claims that have waited in vain for room in their zones to others; what was changed meanwhile stays. Whether
    there were such claims."""
    if len(pool.zones) < 2:
        return False
    now, wait = services.now(), services.settings.zone_wait_seconds
    before, said_before = later_than(now, -wait), later_than(now, -MOST_OFTEN)
    moves = claims_to_move(pool, claims, going, before, said_before)
    for moved in moves:
        changed = replace(moved, updated_at=now, sequence=moved.sequence + 1, version=moved.version + 1)
        transition = Transition("NodeClaim", changed.phase, changed.phase, changed.reason, changed.message)
        with suppress(Conflict):
            services.store.commit(Replace(changed), *tell(services, WORKFLOW_ACTOR, changed, transition))
    return bool(moves)


class Spread:
    """The claims of one commit after another. ``going`` are the ids of those that are being replaced."""

    def __init__(self, services: Services, going: Collection[str] = ()) -> None:
        self._services = services
        self._going = going
        self._claims: dict[str, list[NodeClaim]] = {}

    def bound(self, pool: Pool, draft: NodeClaim) -> NodeClaim:
        """The draft, bound to the possible zone in which the fewest nodes stay; as it was where its pool names no
        zones. What was bound before counts."""
        if not pool.zones:
            return draft
        if pool.name not in self._claims:
            self._claims[pool.name] = list(claims_of(self._services, pool.cluster_id, pool.name))
        claims = self._claims[pool.name]
        requirement = Requirements.of(draft.requirements).get(ZONE)
        allowed = [zone for zone in pool.zones if requirement is None or requirement.has(zone)]
        if not allowed:
            return draft
        (zone,) = next_zones(pool, claims, self._going, 1, allowed)
        placed = replace(draft, requirements=(*draft.requirements, zone_requirement(zone)))
        claims.append(placed)
        return placed
