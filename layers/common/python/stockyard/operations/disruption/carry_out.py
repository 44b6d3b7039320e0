"""How a decision is carried out: what comes is made first, and only when all of it is there do the nodes go.

The record of the cluster's disruption says what was decided before anything is made. A pass that dies in between is
finished by the next one, or undone: replacements that are not there yet are given back, and no node has left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import Any

from stockyard.domain.budgets import EMPTY, UNDERUTILIZED
from stockyard.domain.disruption_records import IDLE, PROPOSED, REPLACING, ClusterDisruption
from stockyard.domain.pool_records import DYNAMIC, Pool
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.errors import Conflict, NotFound, QuotaExceeded
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.pool import later_than, living, wanted_nodes
from stockyard.operations.disruption import measurements
from stockyard.operations.disruption.fleet import View
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.engine.tell import tell
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.operations.pools.claims import AT_ONCE, commit_claims
from stockyard.operations.pools.scale_up import planned_draft
from stockyard.operations.quotas.limits import limit_of
from stockyard.operations.services import Services
from stockyard.ports import Check, Replace
from stockyard.scheduling.consolidation.model import Decision, Replacement, RunningNode
from stockyard.scheduling.consolidation.search import homeless_pods

CONFIRM_SECONDS = 15
"""How long a decision has to stand before it is carried out, as with Karpenter."""
START_SECONDS = 330
"""How long the pass may take that makes the replacements: its function has five minutes."""
REPLACE_SECONDS = 1200
"""How long replacements may take before the decision is given up."""
LOOK_SECONDS = 60
"""When replacements that are being made are looked at again."""
PAUSE_SECONDS = 600
"""How long nothing is decided after a decision was given up."""
ABOUT = "ClusterDisruption"
"""What events of decisions are about."""
DECIDED, STARTED, DISRUPTED, ABANDONED = "DisruptionDecided", "Replacing", "Disrupted", "DisruptionAbandoned"
REPAIRED, NOT_READY = "Repaired", "NotReady"


def write(
    services: Services, record: ClusterDisruption, event: tuple[str, str] | None = None, **fields: Any
) -> ClusterDisruption:
    """The record with these fields, written at its version; ``event`` is the reason and the message of what is told of
    it. Raises ``Conflict`` when somebody else was first."""
    stamp: dict[str, Any] = {
        "version": record.version + 1,
        "updated_at": services.now(),
        "sequence": record.sequence + (event is not None),
    }
    changed: ClusterDisruption = replace(record, **{**fields, **stamp})
    events = []
    if event is not None:
        moved = Transition(ABOUT, record.state, changed.state, *event)
        # The cluster counts its own events.
        events = tell(services, WORKFLOW_ACTOR, changed, moved, subject_of(record.id))
    services.store.commit(Replace(changed), *events)
    return changed


def subject_of(cluster_id: str) -> str:
    """What events of a cluster's decisions have as their subject."""
    return f"disruption/{cluster_id}"


def propose(services: Services, record: ClusterDisruption, view: View, decision: Decision) -> ClusterDisruption:
    """Note a decision, to be carried out when a later look comes to the same."""
    now = services.now()
    return write(
        services,
        record,
        (DECIDED, words(decision)),
        state=PROPOSED,
        reason=decision.reason,
        nodes=_ids(view, decision),
        replacements=(),
        price_before=decision.price_before,
        price_after=decision.price_after,
        possible=decision.possible,
        decided_at=now,
        message=words(decision),
        due_at=later_than(now, CONFIRM_SECONDS),
    )


def is_proposed(record: ClusterDisruption, view: View, decision: Decision) -> bool:
    """Whether a new look has come to the same nodes as the decision that waits to be confirmed."""
    same_nodes = set(record.nodes) == set(_ids(view, decision))
    return record.state == PROPOSED and record.reason == decision.reason and same_nodes


def start(
    services: Services, cluster: Cluster, pools: Sequence[Pool], record: ClusterDisruption, decision: Decision
) -> ClusterDisruption:
    """Make what comes in the place of the nodes that go. Raises ``Conflict`` when something has changed meanwhile."""
    current = {pool.name: pool for pool in pools}
    drafts: dict[str, list[NodeClaim]] = {}
    for replacement in decision.replacements:
        pool = current[replacement.claim.pool.name]
        drafts.setdefault(pool.name, []).append(_draft(services, cluster, pool, replacement))
    ids = tuple(draft.id for listed in drafts.values() for draft in listed)
    now = services.now()
    record = write(
        services,
        record,
        (STARTED, f"{words(decision)} {len(ids)} nodes are made first." if ids else words(decision)),
        state=REPLACING,
        replacements=ids,
        decided_at=now,
        due_at=now if not ids else later_than(now, LOOK_SECONDS),
    )
    measurements.decided(services, record, decision.reason)
    # Whoever has given the decision up meanwhile has made another version of its record.
    fence = Check(ClusterDisruption, record.id, {"version": record.version})
    guard = min((pool.name for pool in pools if pool.kind == DYNAMIC), default="")
    quota = cache(partial(limit_of, services))
    try:
        for name, listed in drafts.items():
            for first in range(0, len(listed), AT_ONCE):
                batch = listed[first : first + AT_ONCE]
                current |= commit_claims(services, cluster, current[name], batch, current[guard], quota, (fence,))
    except QuotaExceeded as refusal:
        return abandon(services, record, refusal.detail)
    except Conflict:
        return abandon(services, record, "Its pools have changed meanwhile.")
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
        return write(services, record, (DISRUPTED, "All nodes of the decision have left."), **_done(now))
    age = services.seconds_since(record.decided_at)
    # The pass that makes them may still be at it.
    lost_claims = [
        claim
        for claim in coming
        if (claim is None and age > START_SECONDS)
        or (claim is not None and (claim.deleting or claim.phase == "Failed"))
    ]
    if lost_claims:
        reason = next((claim.message for claim in lost_claims if claim is not None and claim.message), "it is gone")
        return abandon(services, record, f"A replacement did not come: {reason}")
    waits_for = _awaited(pools, claims, going, coming) or _unreported(view, claims, going, record)
    if waits_for and age > REPLACE_SECONDS:
        return abandon(services, record, f"After {REPLACE_SECONDS // 60} minutes it still waited for {waits_for}.")
    if waits_for or view is None:
        return write(services, record, message=f"It waits for {waits_for}.", due_at=later_than(now, LOOK_SECONDS))
    leaving, why = _still_able(view, going, record)
    if not leaving:
        return abandon(services, record, why)
    for claim in leaving:
        with suppress(NotFound, Conflict):
            delete_claim(services, claim.id, WORKFLOW_ACTOR)
    text = f"{len(leaving)} nodes leave ({record.reason}): {_few(claim.name for claim in leaving)}."
    saved = _saved(record, leaving, [claim for claim in coming if claim is not None])
    done = write(services, record, (DISRUPTED, text), **_sum(record, saved, now), **_done(now))
    usd_hour = sum(saved.values()) if saved is not None else None
    measurements.disrupted(services, record, record.reason, len(leaving), usd_hour)
    return done


def _saved(
    record: ClusterDisruption, leaving: Sequence[NodeClaim], coming: Sequence[NodeClaim]
) -> Mapping[str, float] | None:
    """What the decision saves by pool, in USD an hour; None where nodes do not leave for their price."""
    if record.reason not in (EMPTY, UNDERUTILIZED):
        return None
    saved: defaultdict[str, float] = defaultdict(float)
    for sign, claims in ((1, leaving), (-1, coming)):
        for claim in claims:
            price = claim.placement.usd_hour if claim.placement is not None else None
            saved[claim.pool] += sign * (price or 0.0)
    return saved


def _sum(record: ClusterDisruption, saved: Mapping[str, float] | None, now: str) -> dict[str, Any]:
    """What decisions of this month have saved, with this one."""
    if saved is None:
        return {}
    month = now[:7]
    savings: defaultdict[str, float] = defaultdict(float, record.savings if record.savings_month == month else {})
    for pool, usd in saved.items():
        savings[pool] += usd
    rounded = {pool: round(usd, 6) for pool, usd in savings.items()}
    return {"savings": rounded, "savings_month": month, "left_at": now}


def _done(now: str) -> dict[str, Any]:
    return {"state": IDLE, "nodes": (), "replacements": (), "due_at": later_than(now, LOOK_SECONDS)}


def _awaited(
    pools: Sequence[Pool],
    claims: Sequence[NodeClaim],
    going: Sequence[NodeClaim],
    coming: Sequence[NodeClaim | None],
) -> str:
    """What has to be there before the nodes go; empty for nothing. Every pool must have the nodes that it has to have
    without them: a static pool makes their replacements itself."""
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
        if any(claim.pool == pool.name for claim in going) and len(available) < wanted_nodes(pool):
            return f"nodes of pool {pool.name}: {len(available)} of {wanted_nodes(pool)} are there"
    return ""


def _unreported(
    view: View | None, claims: Sequence[NodeClaim], going: Sequence[NodeClaim], record: ClusterDisruption
) -> str:
    """Of what has to be heard before the nodes go; empty for nothing. A node that has come may be ready before the
    agent tells so: until then it has no room, and nobody could say that the pods have a place on it."""
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
    return f"news of {len(unreported)} new nodes" if unreported else ""


def _still_able(view: View, going: Sequence[NodeClaim], record: ClusterDisruption) -> tuple[Sequence[NodeClaim], str]:
    """Those of the nodes that may still go, and why not where none may: the cluster may be another one by now, and no
    pod loses its place."""
    running = {node.name: node for node in view.fleet.nodes}
    replaceable = {node.name for node in view.replaceable.get(record.reason, ())}
    allowed = {claim.pool: view.allowed(claim.pool, record.reason) for claim in going}
    able, why = [], "None of the nodes may leave any more."
    for claim in going:
        node = running.get(claim.node_name or claim.name)
        if node is None:
            continue
        hindrance = _hindrance(node, record.reason, replaceable)
        if not hindrance and allowed[claim.pool] < 1:
            hindrance = f"a budget of pool {claim.pool} does not allow it any more"
        if hindrance:
            why = f"{claim.name}: {hindrance}."
            continue
        allowed[claim.pool] -= 1
        able.append((claim, node))
    homeless = homeless_pods(view.fleet, [node for _, node in able])
    if homeless:
        return (), f"{homeless} pods would have no place any more."
    return [claim for claim, _ in able], why


def _hindrance(node: RunningNode, reason: str, replaceable: Set[str]) -> str:
    """Why the node may not leave for the reason that was decided; empty: it may."""
    if reason not in (EMPTY, UNDERUTILIZED):
        return "" if node.name in replaceable else f"it is not {reason} any more, or is held"
    if reason == EMPTY and not node.empty:
        return "it is not empty any more"
    return node.hindrance


def abandon(services: Services, record: ClusterDisruption, why: str) -> ClusterDisruption:
    """Give a decision up: nobody leaves, and what was made for it and is no node yet is given back."""
    _give_back(services, record.replacements)
    until = later_than(services.now(), PAUSE_SECONDS)
    fields = {"state": IDLE, "nodes": (), "replacements": (), "message": why, "due_at": until, "paused_until": until}
    after = write(services, record, (ABANDONED, why), **fields)
    measurements.abandoned(services, record)
    # Whoever was still making some has found this version now, and makes no more.
    _give_back(services, record.replacements)
    return after


def _give_back(services: Services, claim_ids: Sequence[str]) -> None:
    """Give back those of the claims that are there and no node yet."""
    for claim_id in claim_ids:
        claim = services.store.get(NodeClaim, claim_id)
        if claim is not None and claim.phase != "Available" and not claim.deleting:
            with suppress(NotFound, Conflict):
                delete_claim(services, claim_id, WORKFLOW_ACTOR)


def repair(services: Services, record: ClusterDisruption, claims: Sequence[NodeClaim]) -> ClusterDisruption:
    """Give nodes back that have not been ready for too long. Nothing on them can be moved in order any more, so that
    nothing is waited for: their pods get other nodes at once."""
    for claim in claims:
        with suppress(NotFound, Conflict):
            delete_claim(services, claim.id, WORKFLOW_ACTOR, grace_seconds=0)
    text = f"{len(claims)} nodes leave ({NOT_READY}): {_few(claim.name for claim in claims)}."
    due_at = later_than(services.now(), LOOK_SECONDS)
    after = write(services, record, (REPAIRED, text), message=text, due_at=due_at)
    measurements.decided(services, record, NOT_READY)
    measurements.disrupted(services, record, NOT_READY, len(claims), None)
    return after


def _few(names: Iterable[str]) -> str:
    """The first of the names."""
    listed = list(names)
    return ", ".join(listed[:3]) + (" and others" if len(listed) > 3 else "")


def words(decision: Decision) -> str:
    """What a decision does, in words."""
    names = _few(node.name for node in decision.nodes)
    return (
        f"{decision.reason}: {len(decision.nodes)} nodes go ({names}), {len(decision.replacements)} come; "
        f"{decision.price_before:.4f} becomes {decision.price_after:.4f} USD an hour."
    )


def _ids(view: View, decision: Decision) -> tuple[str, ...]:
    return tuple(view.claims[node.name].id for node in decision.nodes)
