"""Steps of a decision that is carried out: what comes is made first, and only when all of it is there do the nodes go.

The record of the cluster's disruption says what was decided before anything is made. A pass that dies in between is
finished by the next one, or undone: replacements that are not there yet are given back, and no node has left.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from contextlib import suppress
from functools import partial
from typing import Any

from stockyard.domain.pools.budgets import DRIFTED, EMPTY, UNDERUTILIZED
from stockyard.domain.pools.disruption_records import IDLE, PROPOSED, REPLACING, ClusterDisruption, hold_key, node_key
from stockyard.domain.pools.records import DYNAMIC, STATIC, Pool
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.errors import Conflict, NotFound, QuotaExceeded
from stockyard.lifecycle.disruption.candidates import is_paused
from stockyard.lifecycle.disruption.update_strategy import allowance, most_new, size_of
from stockyard.lifecycle.pools.pool import later_than, living, wanted_nodes
from stockyard.lifecycle.pools.spread import even_without, leaving_evenly
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.fleet.disruption import measurements
from stockyard.operations.fleet.disruption.budget_room import lacking_room
from stockyard.operations.fleet.disruption.fleet import View
from stockyard.operations.fleet.disruption.give_up import abandon, failed_holds, unneeded, vain_holds
from stockyard.operations.fleet.disruption.hopeless import Failure, hopeless
from stockyard.operations.fleet.disruption.pause import paused_by
from stockyard.operations.fleet.disruption.record import (
    DECIDED,
    DISRUPTED,
    REMOVING,
    STARTED,
    claim_ids,
    few,
    words,
    write,
)
from stockyard.operations.fleet.disruption.savings import saved, summed, too_little
from stockyard.operations.fleet.pools.claims import AT_ONCE, commit_claims
from stockyard.operations.fleet.pools.scale_up import planned_draft
from stockyard.operations.fleet.pools.spread import Spread
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.operations.quotas.network_room import check_network_room
from stockyard.operations.quotas.node_claims import Limits
from stockyard.operations.services import Services
from stockyard.ports import Check
from stockyard.scheduling.consolidation.model import WHEN_EMPTY, Decision, Replacement, RunningNode
from stockyard.scheduling.consolidation.places import homeless_pods
from stockyard.scheduling.consolidation.search import empty_nodes

CONFIRM_SECONDS = 15
"""How long a decision has to stand before it is carried out, as with Karpenter."""
EVEN_SECONDS = 300
"""How long a node waits for another one in its zone, which would have two fewer than others without both."""
LOOK_SECONDS = 50
"""When replacements that are being made are looked at again: with the next minute's schedule, which may come a little
sooner than this one did after the minute."""


def propose(services: Services, record: ClusterDisruption, view: View, decision: Decision) -> ClusterDisruption:
    """Note a decision, to be carried out when a later look comes to the same."""
    now = services.now()
    return write(
        services,
        record,
        (DECIDED, words(decision)),
        state=PROPOSED,
        reason=decision.reason,
        nodes=claim_ids(view, decision),
        replacements=(),
        all_made=False,
        failures={},
        price_before=decision.price_before,
        price_after=decision.price_after,
        possible=decision.possible,
        decided_at=now,
        message=words(decision),
        due_at=later_than(now, CONFIRM_SECONDS),
    )


def is_proposed(record: ClusterDisruption, view: View, decision: Decision) -> bool:
    """Whether a new look has come to the same nodes as the decision that waits to be confirmed."""
    same_nodes = set(record.nodes) == set(claim_ids(view, decision))
    return record.state == PROPOSED and record.reason == decision.reason and same_nodes


def start(
    services: Services, cluster: Cluster, pools: Sequence[Pool], record: ClusterDisruption, decision: Decision
) -> ClusterDisruption:
    """Make what comes in the place of the nodes that go. Raises ``Conflict`` when something has changed meanwhile."""
    current = {pool.name: pool for pool in pools}
    drafts: dict[str, list[NodeClaim]] = {}
    spread = Spread(services, record.nodes)
    for replacement in decision.replacements:
        pool = current[replacement.claim.pool.name]
        draft = spread.bound(pool, _draft(services, cluster, pool, replacement))
        drafts.setdefault(pool.name, []).append(draft)
    ids = tuple(draft.id for listed in drafts.values() for draft in listed)
    now = services.now()
    record = write(
        services,
        record,
        (
            STARTED if ids or decision.by_pools else REMOVING,
            f"{words(decision)} {len(ids)} nodes are made first." if ids else words(decision),
        ),
        state=REPLACING,
        replacements=ids,
        decided_at=now,
        due_at=now if not ids else later_than(now, LOOK_SECONDS),
        # What is made now is no sign that pods of the decision before have found no place.
        **({"left_at": ""} if ids else {}),
    )
    measurements.decided(services, record, decision.reason)
    # Whoever has given the decision up meanwhile has made another version of its record.
    fence = Check(ClusterDisruption, record.id, {"version": record.version})
    guard = min((pool.name for pool in pools if pool.kind == DYNAMIC), default="")
    limits: Limits = {}
    try:
        check_network_room(services, cluster, len(ids))
        for name, listed in drafts.items():
            for first in range(0, len(listed), AT_ONCE):
                batch = listed[first : first + AT_ONCE]
                current |= commit_claims(services, cluster, current[name], batch, current[guard], limits, (fence,))
    except QuotaExceeded as refusal:
        return abandon(services, record, refusal.detail, failed_holds(record))
    except Conflict:
        # It says nothing of the decision, which may come again with the next look.
        return abandon(services, record, "Its pools have changed meanwhile.")
    with suppress(Conflict):  # Somebody has woken the next look: it waits a little longer for what is not there.
        record = write(services, record, all_made=bool(ids))
    return record


def _draft(services: Services, cluster: Cluster, pool: Pool, replacement: Replacement) -> NodeClaim:
    return planned_draft(services, cluster, pool, replacement.claim, replacement.ceiling)


def advance(
    services: Services, pools: Sequence[Pool], claims: Sequence[NodeClaim], record: ClusterDisruption, view: View | None
) -> ClusterDisruption:
    """The next step of a decision whose replacements are being made. ``view`` is None while nobody knows what runs in
    the cluster: then nothing leaves."""
    now = services.now()
    by_id = {claim.id: claim for claim in claims}
    going = [by_id[claim_id] for claim_id in record.nodes if claim_id in by_id and not by_id[claim_id].deleting]
    coming = [by_id.get(claim_id) for claim_id in record.replacements]
    if not going:
        event = None if record.leaving else (DISRUPTED, "All nodes of the decision have left.")
        return write(services, record, event, **_done(record, now))
    given_up = partial(_given_up, services, pools, claims, record, view)
    paused = _paused(services, pools, record, going)
    if paused:
        return given_up(f"It is given up: {paused}.", hold=False)
    waits_for = _awaited(pools, claims, going, coming, record) or _unreported(view, claims, going, record)
    if not waits_for and services.seconds_since(record.decided_at) < EVEN_SECONDS:
        waits_for = _uneven(pools, claims, going, record)
    soon = later_than(now, LOOK_SECONDS)
    no_room = lacking_room(services, pools, claims, record, going)
    failure = None if no_room else hopeless(services, pools, claims, record, waits_for)
    if failure is not None:
        going = _covered(pools, claims, going)
        if not going or view is None:
            return given_up(failure.message, failure=failure if record.replacements else None)
    elif no_room or waits_for or view is None:
        may_give_room = no_room and view is not None and empty_nodes(view.fleet, view.rolled)
        return (
            given_up("Empty nodes leave first: what they cost gives room in a budget.", hold=False)
            if may_give_room
            else write(services, record, message=f"It waits for {no_room or waits_for}.", due_at=soon)
        )
    present = [claim for claim in coming if claim is not None]
    leaving, why = _still_able(view, going, present, record)
    if not leaving:
        # What a budget counts passes: nodes that have just come are not told to be ready yet.
        return given_up(why, hold=not all(view.allowed(claim.pool, record.reason) < 1 for claim in going))
    return _let_go(services, record, view, leaving, present)


def _covered(pools: Sequence[Pool], claims: Sequence[NodeClaim], going: Sequence[NodeClaim]) -> list[NodeClaim]:
    """Nodes of static pools that go, as many as have a replacement: no more have come, and may not come soon."""
    covered: list[NodeClaim] = []
    for pool in pools:
        own = [claim for claim in living(claims) if claim.pool == pool.name and claim.phase == "Available"]
        if pool.kind == STATIC:
            covered += [claim for claim in going if claim.pool == pool.name][: max(0, len(own) - wanted_nodes(pool))]
    return covered


def _let_go(
    services: Services,
    record: ClusterDisruption,
    view: View,
    leaving: Sequence[NodeClaim],
    coming: Sequence[NodeClaim],
) -> ClusterDisruption:
    """Give the nodes back. That they leave, and what it saves, is written first: a pass that dies in between has told
    it, and the next one only ends it."""
    now = services.now()
    if record.reason == DRIFTED and not record.leaving:
        leaving = _evenly(view, leaving)
    if not record.leaving:
        usd_hour = saved(view, record, leaving, coming)
        text = f"{len(leaving)} nodes leave ({record.reason}): {few(claim.name for claim in leaving)}."
        fields = {"nodes": tuple(claim.id for claim in leaving), "leaving": True, "due_at": now}
        record = write(services, record, (DISRUPTED, text), **fields, **summed(record, usd_hour, now))
        total = sum(usd_hour.values()) if usd_hour is not None else None
        measurements.disrupted(services, record, record.reason, len(leaving), total)
    for claim in leaving:
        with suppress(NotFound, Conflict):
            delete_claim(services, claim.id, WORKFLOW_ACTOR)
    keys = {hold_key(record.reason, claim.pool) for claim in leaving}
    keys |= {node_key(record.reason, claim.id) for claim in leaving}
    return write(services, record, **_done(record, services.now(), keys))


def _evenly(view: View, leaving: Sequence[NodeClaim]) -> list[NodeClaim]:
    """The nodes to remove now, so that the zones of their pools stay even; the others are decided on anew."""
    ordered: list[NodeClaim] = []
    for name in dict.fromkeys(claim.pool for claim in leaving):
        pool = view.pools.get(name)
        present = living([claim for claim in view.claims.values() if claim.pool == name])
        own = [claim for claim in leaving if claim.pool == name]
        ordered += leaving_evenly(pool, own, present) if pool is not None else own
    return ordered


def _given_up(
    services: Services,
    pools: Sequence[Pool],
    claims: Sequence[NodeClaim],
    record: ClusterDisruption,
    view: View | None,
    why: str,
    *,
    hold: bool = True,
    failure: Failure | None = None,
) -> ClusterDisruption:
    """Give a decision up that has been begun. ``hold`` says that the same is not to be decided for a while; after the
    ``failure`` of a replacement that is its nodes and what could not be had."""
    by_id = {claim.id: claim for claim in claims}
    holds = vain_holds(record, claims) if hold else {}
    if failure is not None:
        holds = failed_holds(record, failure.types)
    coming = [by_id.get(claim_id) for claim_id in record.replacements]
    spare = unneeded(view, pools, claims, coming) if view is not None else ()
    return abandon(services, record, why, holds, spare)


def _paused(
    services: Services, pools: Sequence[Pool], record: ClusterDisruption, going: Sequence[NodeClaim]
) -> str | None:
    """Words for who has paused the disruption of all nodes that go; None: nobody."""
    by_whom = paused_by(services, record)
    paused = {pool.name for pool in pools if is_paused(pool)}
    if not by_whom and all(claim.pool in paused for claim in going):
        by_whom = f"the disruption of pool {going[0].pool} is paused"
    return by_whom


def _done(record: ClusterDisruption, now: str, carried: Set[str] = frozenset()) -> dict[str, Any]:
    """The fields of a record whose decision is at its end; for what was carried out nothing is held back any more."""
    return {
        "state": IDLE,
        "nodes": (),
        "replacements": (),
        "leaving": False,
        "held_until": {key: until for key, until in record.held_until.items() if key not in carried},
        "held_times": {key: times for key, times in record.held_times.items() if key not in carried},
        "due_at": later_than(now, LOOK_SECONDS),
    }


def _awaited(
    pools: Sequence[Pool],
    claims: Sequence[NodeClaim],
    going: Sequence[NodeClaim],
    coming: Sequence[NodeClaim | None],
    record: ClusterDisruption,
) -> str | None:
    """Thing that has to be there before the nodes go; None for nothing. Every pool must have the nodes that it has to
    have without them: a static pool makes their replacements itself."""
    missing = sum(claim is None or claim.phase != "Available" for claim in coming)
    if missing:
        return f"{missing} replacements"
    excluded = {claim.id for claim in going}
    for pool in pools:
        available = [
            claim
            for claim in living(claims)
            if claim.pool == pool.name and claim.id not in excluded and claim.phase == "Available"
        ]
        needed = _needed(pool, claims, record)
        if any(claim.pool == pool.name for claim in going) and len(available) < needed:
            return f"nodes of pool {pool.name}: {len(available)} of {needed} are there"
    return None


def _uneven(
    pools: Sequence[Pool], claims: Sequence[NodeClaim], going: Sequence[NodeClaim], record: ClusterDisruption
) -> str | None:
    """Node that has to come so that zones stay even when the nodes go; None for nothing. A strategy that lets nodes be
    missing lets one go before another has come, and one that lets more come has the next one come first."""
    for pool in pools if record.reason == DRIFTED and not record.leaving else ():
        own = [claim for claim in claims if claim.pool == pool.name]
        leaving = [claim for claim in going if claim.pool == pool.name]
        allowed = allowance(pool, size_of(pool, claims, record.decided_at))
        if not leaving or allowed is None or not allowed.surge or even_without(pool, leaving, living(own)):
            continue
        if most_new(pool, own) or any(claim.phase == "Pending" for claim in living(own)):
            return f"another node of pool {pool.name} in the zone of {leaving[0].name}"
    return None


def _needed(pool: Pool, claims: Sequence[NodeClaim], record: ClusterDisruption) -> int:
    """Number of nodes of the pool that have to be there when the others go."""
    size = size_of(pool, claims, record.decided_at)
    allowed = allowance(pool, size) if record.reason == DRIFTED else None
    return wanted_nodes(pool) if allowed is None else max(0, size - allowed.unavailable)


def _unreported(
    view: View | None, claims: Sequence[NodeClaim], going: Sequence[NodeClaim], record: ClusterDisruption
) -> str | None:
    """News that has to come before the nodes go; None for nothing. A node that has come may be ready before the agent
    tells so: until then it has no room, and nobody could say that the pods have a place on it."""
    if view is None:
        return "news of what runs in the cluster"
    reported = {node.name for node in view.fleet.nodes}
    pools = {claim.pool for claim in going}
    unreported = [
        claim
        for claim in living(claims)
        if claim.phase == "Available"
        and (claim.id in record.replacements or (claim.pool in pools and claim.created_at >= record.decided_at))
        and (claim.node_name or claim.name) not in reported
    ]
    return f"news of {len(unreported)} new nodes" if unreported else None


def _still_able(
    view: View, going: Sequence[NodeClaim], coming: Sequence[NodeClaim], record: ClusterDisruption
) -> tuple[Sequence[NodeClaim], str]:
    """Nodes that may still go, and why not where none may: the cluster may be another one by now, no pod loses its
    place, and what leaves for its price saves money."""
    running = {node.name: node for node in view.fleet.nodes}
    replaceable = {node.name for node in view.replaceable.get(record.reason, ())}
    allowed = {claim.pool: view.allowed(claim.pool, record.reason) for claim in going}
    able, why = [], "None of the nodes may leave any more."
    for claim in going:
        node = running.get(claim.node_name or claim.name)
        if node is None:
            continue
        blocker = _blocker(view, node, record.reason, replaceable)
        if not blocker and allowed[claim.pool] < 1:
            blocker = f"a budget of pool {claim.pool} does not allow it any more"
        if blocker:
            why = f"{claim.name}: {blocker}."
            continue
        allowed[claim.pool] -= 1
        able.append((claim, node))
    if record.reason == UNDERUTILIZED and able and not record.leaving:
        little = too_little(view, [node for _, node in able], coming, partly=len(able) < len(going))
        if little:
            return (), little
    # Where nodes of a pool may be missing for a while, their pods wait for the next ones.
    homeless = homeless_pods(view.fleet, [node for claim, node in able if not _may_wait(view, claim, record)])
    if homeless:
        return (), f"{homeless} pods would have no place any more."
    return [claim for claim, _ in able], why


def _may_wait(view: View, claim: NodeClaim, record: ClusterDisruption) -> bool:
    pool = view.pools.get(claim.pool)
    if pool is None or record.reason != DRIFTED:
        return False
    allowed = allowance(pool, size_of(pool, tuple(view.claims.values())))
    return allowed is not None and allowed.unavailable > 0


def _blocker(view: View, node: RunningNode, reason: str, replaceable: Set[str]) -> str | None:
    """Reason why the node may not leave for the reason that was decided; None: it may."""
    if reason not in (EMPTY, UNDERUTILIZED):
        return None if node.name in replaceable else f"it is not {reason} any more, or is held"
    if reason == EMPTY and not node.empty:
        return "it is not empty any more"
    if reason == UNDERUTILIZED and view.fleet.rules_of(node).policy == WHEN_EMPTY and not node.empty:
        return f"pool {node.pool} lets only empty nodes go by now"
    return node.blocker
