"""Nodes of a pool with zones are spread evenly over them, within one: pure functions of the pool and its claims.

Each claim is bound to one zone when it is made: where the fewest are, and a node leaves where the most are. Either
keeps zones even that were. Of zones that have equally many the next one stands where the fewest stay, then where the
most are still to be replaced, so that the zone which has one more than others is one that a node may leave.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from stockyard.domain.nodes.records import NodeClaim
from stockyard.domain.pools.records import NewPool, Pool
from stockyard.domain.values.requirements import IN, ZONE
from stockyard.lifecycle.nodes.drift import is_drifted
from stockyard.lifecycle.nodes.interruption import is_interrupted

SHORT, MOVED = "InsufficientCapacity", "ZoneChanged"
"""Why a claim waits for room that a zone has not, and that it is bound to another one."""


def spread_requirements(pool: NewPool | Pool) -> tuple[dict[str, Any], ...]:
    """The requirements of the pool's nodes, its zones among them."""
    return (*pool.requirements, _entry(pool.zones)) if pool.zones else pool.requirements


def zone_requirement(zone: str) -> dict[str, Any]:
    """Requirement that binds a claim to the zone."""
    return _entry((zone,))


def _entry(zones: Sequence[str]) -> dict[str, Any]:
    return {"key": ZONE, "operator": IN, "values": list(zones)}


def zone_of(claim: NodeClaim) -> str:
    """The zone in which the claim's node is or will be; empty where nobody knows."""
    if claim.placement is not None and len(claim.placement.zones) == 1 and claim.placement.zones[0] != "*":
        return claim.placement.zones[0]
    listed = [entry["values"] for entry in claim.requirements if entry.get("key") == ZONE and entry.get("values")]
    single = [values[0] for values in listed if len(values) == 1]
    return single[-1] if single else ""


def living(claim: NodeClaim) -> bool:
    """Whether the claim is, or may become, a node that stays."""
    return not claim.deleting and claim.phase != "Failed"


def next_zones(
    pool: Pool, claims: Sequence[NodeClaim], going: Collection[str], count: int, allowed: Iterable[str] = ()
) -> list[str]:
    """The zones of the pool's next ``count`` claims, in order. ``claims`` are all of the pool, ``going`` the ids of
    those that are being replaced; ``allowed`` are the zones that these may have, none for all of the pool's."""
    own = [claim for claim in claims if claim.pool == pool.name]
    # What its cloud takes back is gone soon, however many others are there.
    present = Counter(zone_of(claim) for claim in own if living(claim) and not is_interrupted(claim))
    staying = Counter(zone_of(claim) for claim in own if living(claim) and claim.id not in going)
    allowed_zones = set(allowed)
    stale = Counter(zone_of(claim) for claim in own if living(claim) and is_drifted(claim) and claim.id not in going)
    usable = [zone for zone in pool.zones if not allowed_zones or zone in allowed_zones]
    zones = []
    for _ in range(count if usable else 0):
        zone = min(usable, key=lambda name: (present[name], staying[name], -stale[name], pool.zones.index(name)))
        staying[zone] += 1
        present[zone] += 1
        zones.append(zone)
    return zones


def claims_to_move(
    pool: Pool, claims: Sequence[NodeClaim], going: Collection[str], before: str, said_before: str | None = None
) -> list[NodeClaim]:
    """Claims made ``before`` a moment that still wait for room in their zone, bound to another zone: a zone without
    room must not keep a pool from what others have. None while all zones are like that.

    ``said_before``: only those of which nothing new was said since that moment.
    """
    short = [claim for claim in claims if _is_short(claim) and zone_of(claim) in pool.zones]
    full_zones = {zone_of(claim) for claim in short}
    roomy = [zone for zone in pool.zones if zone not in full_zones]
    by_id = {claim.id: claim for claim in claims}
    changed: list[NodeClaim] = []
    for claim in [*short, *_outside(pool, claims)] if roomy else ():
        if claim.created_at >= before or (said_before is not None and claim.updated_at >= said_before):
            continue
        del by_id[claim.id]
        (zone,) = next_zones(pool, list(by_id.values()), going, 1, roomy)
        former = zone_requirement(zone_of(claim))
        requirements = tuple(zone_requirement(zone) if entry == former else entry for entry in claim.requirements)
        why = f" ({claim.message.rstrip('.')})" if claim.message else ""
        text = f"There was no room in {zone_of(claim)} for long{why}; it may be in {zone} now."
        by_id[claim.id] = replace(claim, requirements=requirements, reason=MOVED, message=text)
        changed.append(by_id[claim.id])
    return changed


def _is_short(claim: NodeClaim) -> bool:
    return _is_unplaced(claim) and claim.reason == SHORT


def _outside(pool: Pool, claims: Sequence[NodeClaim]) -> list[NodeClaim]:
    """Claims that wait in a zone that the pool has no more: nothing ever comes there."""
    return [claim for claim in claims if _is_unplaced(claim) and zone_of(claim) not in ("", *pool.zones)]


def _is_unplaced(claim: NodeClaim) -> bool:
    return claim.phase == "Pending" and not claim.deleting and claim.placement is None


def fullest_first(zones: Sequence[str], claims: Iterable[NodeClaim], present: Iterable[NodeClaim]) -> list[NodeClaim]:
    """``claims`` in the order of removal that keeps ``present``, which contains them, even across zones: each the next
    one of the zone that has the most by then. Within a zone in the order given."""
    if not zones:
        return list(claims)
    counts = Counter(zone_of(claim) for claim in present)
    queues: dict[str, deque[NodeClaim]] = {}
    for claim in claims:
        queues.setdefault(zone_of(claim), deque()).append(claim)
    ordered = []
    while queues:
        zone = max(queues, key=lambda name: counts[name])
        ordered.append(queues[zone].popleft())
        counts[zone] -= 1
        if not queues[zone]:
            del queues[zone]
    return ordered


def leaving_evenly(pool: Pool, claims: Sequence[NodeClaim], present: Sequence[NodeClaim]) -> list[NodeClaim]:
    """Claims, of ``claims``, that leave now, in order: the ones of :func:`even_without`. Where there are none one
    leaves all the same, or they would never be replaced."""
    return even_without(pool, claims, present) or list(claims[:1])


def even_without(pool: Pool, claims: Sequence[NodeClaim], present: Sequence[NodeClaim]) -> list[NodeClaim]:
    """Claims, of ``claims``, without which the zones of ``present`` stay even, in order: each of a zone that has the
    most by then."""
    if not pool.zones:
        return list(claims)
    counts = Counter(zone_of(claim) for claim in present)
    able: list[NodeClaim] = []
    for claim in fullest_first(pool.zones, claims, present):
        if counts[zone_of(claim)] < max(counts.values()):
            break
        counts[zone_of(claim)] -= 1
        able.append(claim)
    return able


def kept_for_balance(pools: Mapping[str, Pool], claims: Sequence[NodeClaim], empty: Collection[str]) -> set[str]:
    """Ids of claims whose nodes may not leave without one in their place: their zone would have fewer nodes than it
    has to. Of each of the fullest zones one may, an ``empty`` one rather than others."""
    bound: set[str] = set()
    for pool in pools.values():
        if len(pool.zones) < 2:
            continue
        own = [claim for claim in claims if claim.pool == pool.name and living(claim)]
        counts = Counter(zone_of(claim) for claim in own)
        most = max(counts.values(), default=0)
        bound.update(claim.id for claim in own)
        for zone in pool.zones:
            if counts[zone] == most:
                there = [claim for claim in own if zone_of(claim) == zone]
                bound -= {min(there, key=lambda claim: (claim.id not in empty, claim.id)).id} if there else set()
    return bound
