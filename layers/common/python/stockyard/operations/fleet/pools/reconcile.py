"""One pass over the pools of a cluster: claims are made where nodes are missing, and given back where there are too
many, until each pool has what it is to have.

Passes may overlap: a batch of claims is written in one transaction with its pool, at the version that was read, and
under a check that the cluster is still ready. So nothing is made twice, and nothing for a cluster that is going.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stockyard.domain.pools.budgets import DRIFTED
from stockyard.domain.pools.disruption_records import IDLE, ClusterDisruption
from stockyard.domain.pools.records import DYNAMIC, Pool
from stockyard.domain.pools.replacements import failed_replacements
from stockyard.domain.pools.workload_records import UnusedRoom
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.values.conditions import Condition
from stockyard.errors import Conflict, NotFound, QuotaExceeded
from stockyard.lifecycle.disruption.forced import is_leaving
from stockyard.lifecycle.disruption.update_strategy import most_new
from stockyard.lifecycle.disruption.vanished import MISSED_SECONDS, REJOIN_SECONDS, REPORT_SECONDS
from stockyard.lifecycle.nodes.drift import is_drifted
from stockyard.lifecycle.nodes.interruption import is_interrupted
from stockyard.lifecycle.pools.no_types import most_telling_first, shows_types, with_reason, without_types
from stockyard.lifecycle.pools.pool import (
    LOOK_AGAIN_SECONDS,
    PODS_HAVE_ROOM,
    POOLS_READY,
    decide,
    is_ready,
    later_than,
    looked_at_within,
    pauses,
    pods_condition,
    pools_condition,
    within_limits,
)
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.engine.watch import note_failures, watch
from stockyard.operations.fleet.pools import conditions
from stockyard.operations.fleet.pools.adoption import adopt
from stockyard.operations.fleet.pools.claims import batch_size, commit_claims, draft_claim
from stockyard.operations.fleet.pools.groups import ensure_provider
from stockyard.operations.fleet.pools.no_types import why_no_types
from stockyard.operations.fleet.pools.pools import claims_of, pools_of
from stockyard.operations.fleet.pools.spread import Spread, move_claims
from stockyard.operations.fleet.pools.step_writes import write_refusal, write_step
from stockyard.operations.fleet.state import Workload, workload_of
from stockyard.operations.machines import mirror
from stockyard.operations.machines.attention import attend
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.operations.node_claims.drift import compare_pool
from stockyard.operations.node_claims.vanished_nodes import note_nodes
from stockyard.operations.services import Services
from stockyard.ports import Replace

if TYPE_CHECKING:
    from stockyard.scheduling.packing.plan import Plan

MOST_DRIFTED = 60
"""Claims of which one pass says that they have drifted, or have no more: each is a transaction."""
NEW_NODES_SECONDS = 600
"""For how long an agent comes often once nodes were made for pods: what they need then changes most."""
DRIFT_SECONDS = 60
"""When a pass goes on with what was too much for the one before it."""


@dataclass(slots=True)
class Report:
    """Report of a pass. ``drifted``: claims of which it said that their node has drifted, or has no more. ``lost``:
    pools that somebody else changed meanwhile; they are looked at again. ``outdated``: the claims that the pass read
    first may be others now."""

    created: int = 0
    given_back: int = 0
    drifted: int = 0
    lost: int = 0
    outdated: bool = False


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over the pools of a cluster. ``going`` are the ids of claims that are being replaced, ``replacements``
    of those that come in their place; both count for no pool."""

    services: Services
    cluster: Cluster
    report: Report
    going: Set[str]
    replacements: Set[str]


def reconcile(services: Services, cluster_id: str, lease: str | None = None) -> Report:
    """Bring every pool of the cluster one step nearer to what it is to have. A ``due_at`` of ``lease`` is no wish to be
    looked at: the schedule wrote it when it began this pass."""
    report = Report()
    cluster = services.store.get(Cluster, cluster_id)
    pools = pools_of(services, cluster_id)
    if cluster is None or cluster.status == "deleting":
        _leave_to_deletion(services, pools)
        return report
    pools = [replace(pool, due_at=None) if pool.due_at == lease else pool for pool in pools]
    if not (pools or conditions.of(cluster, POOLS_READY)):
        return report
    all_claims = claims_of(services, cluster_id)
    by_pool: dict[str, list[NodeClaim]] = {}
    for claim in all_claims:
        by_pool.setdefault(claim.pool, []).append(claim)
    empty = [pool for pool in pools if pool.deleting and pool.name not in by_pool]
    occupied = [pool for pool in pools if pool not in empty]
    # What is being replaced, or may be taken back by its cloud, counts for nobody any more, so that a static pool makes
    # the replacements.
    disruption = services.store.get(ClusterDisruption, cluster_id)
    going = {claim.id for claim in all_claims if is_interrupted(claim)}
    replacements: Set[str] = frozenset()
    if disruption is not None:
        going |= disruption.going
        replacements = frozenset(disruption.replacements)
        if failed_replacements(disruption, all_claims):
            note_failures(services, cluster_id, all_claims)
    current_pass = Pass(services, cluster, report, going, replacements)
    steps = [_step(current_pass, pool, by_pool.get(pool.name, ())) for pool in occupied]
    # One that is empty is still among them: claims of other passes may go through its record.
    present = [pool for pool in steps if pool is not None]
    settled = [*present, *empty]
    has_written = any(step is not pool for step, pool in zip(steps, occupied, strict=True))
    claims = None if report.outdated else all_claims
    if cluster.status == "ready":
        adopted_nodes = adopt(services, cluster, settled, claims)
        if adopted_nodes:
            report.created += adopted_nodes
            settled, claims, has_written = pools_of(services, cluster.id), None, True
        placed = _scale_up(current_pass, settled, claims)
        # Where no pool makes nodes for pods, nothing is said of them.
        void = () if any(pool.kind == DYNAMIC for pool in settled) else (PODS_HAVE_ROOM,)
        ready = pools_condition(most_telling_first(settled), services.now())
        conditions.show(services, cluster, [ready, *placed], void)
        report.drifted = _compare(current_pass, present, by_pool)
        news = has_written or report.drifted
        if news or disruption is None or _goes_on(disruption, all_claims, services.now()):
            watch(services, cluster.id, begin=True)
    # Before the last pool is gone: then no schedule leads to the cluster any more.
    changes = report.created + report.given_back + report.drifted
    mirror.note(services, cluster, present, all_claims, changes)
    for pool in empty:
        _step(current_pass, pool, ())
    return report


def _goes_on(disruption: ClusterDisruption, claims: Sequence[NodeClaim], now: str) -> bool:
    """Whether what woke the pass, a node that has come or is gone, may let the next node go. A decision that is being
    carried out has a look of its own in a minute."""
    return disruption.state == IDLE and any(
        is_drifted(claim) and not claim.deleting and not disruption.node_held_until(DRIFTED, claim.pool, claim.id, now)
        for claim in claims
    )


def _counted(pool: Pool, claims: Sequence[NodeClaim], going: Set[str]) -> Sequence[NodeClaim]:
    """The claims that count for a pool: all where it is on its way out."""
    return claims if pool.deleting else [claim for claim in claims if claim.id not in going]


def _leave_to_deletion(services: Services, pools: Sequence[Pool]) -> None:
    """The deletion of the cluster removes its pools: the schedule, which takes the longest due, need not look at them,
    however long that is blocked."""
    for pool in pools:
        if pool.due_at is not None:
            with suppress(Conflict):
                services.store.commit(Replace(replace(pool, due_at=None, version=pool.version + 1)))


def _scale_up(current_pass: Pass, pools: Sequence[Pool], claims: Sequence[NodeClaim] | None) -> Sequence[Condition]:
    """Make nodes for the pods that wait, and say whether all have room; nothing while nobody tells of pods.

    ``claims`` were read after the pools, at whose versions the new ones are written; None: they are read here.
    """
    services, cluster = current_pass.services, current_pass.cluster
    dynamic = [pool for pool in pools if pool.kind == DYNAMIC and not pool.deleting]
    workload = workload_of(services, cluster.id) if dynamic else None
    if workload is None:
        return ()
    present = claims_of(services, cluster.id) if claims is None else claims
    if notes := [note for claim in present if (note := workload.noted(claim, services.clock.now())) is not None]:
        # It is noted at once: pods that were bound to a node that is gone do not tell of it for long.
        note_nodes(services, notes)
        watch(services, cluster.id, REJOIN_SECONDS)
    if not (workload.pending or any(pool.headroom for pool in dynamic) or _moves(workload, present)):
        _forget_unused(services, cluster.id)
        _show_limits(services, dynamic, {})
        return [pods_condition(workload.unread_text, services.now())]
    return [_make_room(current_pass, pools, dynamic, present, workload)]


def _make_room(
    current_pass: Pass,
    pools: Sequence[Pool],
    dynamic: Sequence[Pool],
    claims: Sequence[NodeClaim],
    workload: Workload,
) -> Condition:
    """Make nodes for pods that wait and for headroom; the condition that says whether all have room."""
    # The packer is loaded only where something waits.
    from stockyard.operations.fleet.pools import scale_up, unused_room

    services, cluster, going = current_pass.services, current_pass.cluster, current_pass.going
    message = waits = None
    seconds = LOOK_AGAIN_SECONDS
    limits: Mapping[str, str] = {}
    plan: Plan | None = None
    try:
        for pool in dynamic:
            ensure_provider(services, cluster, pool)
        plan, belief = scale_up.believed_plan(services, cluster, pools, claims, workload, going)
        memory = unused_room.remember(services, cluster.id, belief, plan, workload)
        remarks = unused_room.remarks(belief, memory, workload)
        pausing = [pool for pool in dynamic if pauses(pool, services.now())]
        refusals = scale_up.left_out(plan, workload, pausing, belief.withheld)
        message = _together(refusals, remarks.fails, workload.unread_text)
        waits = remarks.waits
        limits = scale_up.limits_reached(plan, workload)
        seconds = min(seconds, scale_up.seconds_until_next_try(plan))
        if any(not entry.is_empty for entry in memory.values()):
            seconds = min(seconds, unused_room.LOOK_SECONDS)
        missed_claims = [claim for claim in claims if workload.misses(claim, services.clock.now())]
        if missed_claims:
            names = {claim.node_name or claim.name for claim in missed_claims}
            waits = _together(waits, scale_up.beside_missed(plan, workload, names))
            # Its room is counted until the agent vouches for a report without it, and nothing tells when it does.
            attend(services, cluster.id, MISSED_SECONDS)
            seconds = min(seconds, REPORT_SECONDS)
        created = scale_up.create_claims(services, cluster, pools, plan, going)
        current_pass.report.created += created
        if created:
            # What pods leave of new nodes is told soon: an idle agent would say it minutes later.
            attend(services, cluster.id, NEW_NODES_SECONDS)
    except Conflict:
        current_pass.report.lost += 1
    except QuotaExceeded as refusal:
        message = _together(f"{scale_up.without_node(plan, workload)}{refusal.detail}", message)
    # Claims are made at the versions of the pools as they were read: what is written on these comes later.
    _show_limits(services, dynamic, limits)
    if message or seconds < LOOK_AGAIN_SECONDS:
        _look_soon(services, dynamic[0], seconds)
    return pods_condition(message, services.now(), waits)


def _together(*texts: str | None) -> str | None:
    return " ".join(filter(None, texts)) or None


def _show_limits(services: Services, pools: Sequence[Pool], limits: Mapping[str, str]) -> None:
    """Say on pools whether their limits keep pods waiting; ``limits`` has which, by the name of the pool. Writes only
    what is new."""
    for pool in pools:
        if within_limits(pool, limits.get(pool.name), services.now()) is None:
            continue
        current = services.store.get(Pool, pool.id)
        changed = within_limits(current, limits.get(pool.name), services.now()) if current is not None else None
        if changed is not None:
            with suppress(Conflict):
                services.store.commit(Replace(replace(changed, version=changed.version + 1)))


def _forget_unused(services: Services, cluster_id: str) -> None:
    """No pods wait: what was learned of others says nothing of those that come."""
    record = services.store.get(UnusedRoom, cluster_id)
    if record is not None and record.groups:
        changed = replace(record, groups={}, updated_at=services.now(), version=record.version + 1)
        with suppress(Conflict):
            services.store.commit(Replace(changed))


def _moves(workload: Workload, claims: Sequence[NodeClaim]) -> bool:
    """Whether pods are on nodes that leave."""
    return any(is_leaving(claim) and workload.reschedulable.get(claim.node_name or claim.name) for claim in claims)


def _compare(current_pass: Pass, pools: Sequence[Pool], by_pool: Mapping[str, Sequence[NodeClaim]]) -> int:
    """Say which nodes are no more what their pools would make; those that are too many for a pass come in the next."""
    services, cluster = current_pass.services, current_pass.cluster
    allowance, count = MOST_DRIFTED, 0
    for pool in pools:
        if pool.deleting:
            continue
        noted = compare_pool(
            services, pool, by_pool.get(pool.name, ()), allowance, max(cluster.nodes_since, pool.nodes_since)
        )
        allowance, count = allowance - noted, count + noted
        if not allowance:
            _look_soon(services, pool, DRIFT_SECONDS)
            break
    return count


def _look_soon(services: Services, pool: Pool, seconds: int = LOOK_AGAIN_SECONDS) -> None:
    """Have the schedule look at the cluster: nothing tells of a type that is to be had again, or of a quota."""
    now = services.now()
    current = services.store.get(Pool, pool.id)
    if current is None or looked_at_within(current, now, seconds):
        return
    due_at = later_than(now, seconds)
    with suppress(Conflict):
        services.store.commit(Replace(replace(current, due_at=due_at, version=current.version + 1, updated_at=now)))


def _step(current_pass: Pass, pool: Pool, claims: Sequence[NodeClaim]) -> Pool | None:
    """The pool after its step; None when it is gone."""
    services, cluster, report = current_pass.services, current_pass.cluster, current_pass.report
    counted = _counted(pool, claims, current_pass.going)
    decision = decide(pool, cluster, counted, services.now(), current_pass.replacements)
    if cluster.status == "ready" and not pool.deleting:
        decision = replace(decision, pool=_with_reason(services, cluster, pool, decision.pool, counted))
    missing = min(decision.create, most_new(pool, claims))
    try:
        current = write_step(services, pool, decision)
        if current is None:
            return None
        # Also for claims that are there: the provider may have gone with the last other cluster that needed it.
        if cluster.status == "ready" and not (current.deleting or is_ready(current)):
            ensure_provider(services, cluster, current)
        spread = Spread(services, current_pass.going)
        while missing > 0:
            report.outdated = True
            count = batch_size(services, cluster, current, missing)
            drafts = [spread.bound(current, draft_claim(services, cluster.id, current)) for _ in range(count)]
            current = commit_claims(services, cluster, current, drafts)[pool.name]
            report.created += count
            missing -= count
    except Conflict:
        report.lost += 1
        report.outdated = True
        return services.store.get(Pool, pool.id)
    except QuotaExceeded as refusal:
        # What failed still counts for the quota: it goes all the same.
        report.outdated = True
        current = write_refusal(services, pool, f"{refusal.detail} {missing} nodes are missing.")
    if current is not None and move_claims(services, current, claims, current_pass.going):
        report.outdated = True
    for claim in decision.give_back:
        report.outdated = True
        with suppress(NotFound, Conflict):
            delete_claim(services, claim.id, WORKFLOW_ACTOR)
            report.given_back += 1
    return current


def _with_reason(services: Services, cluster: Cluster, pool: Pool, decided: Pool, claims: Sequence[NodeClaim]) -> Pool:
    """The pool as it is decided on, with why it can have no node, or why its claims wait."""
    why = None if shows_types(pool, claims) else why_no_types(services, cluster, pool)
    if why:
        return without_types(pool, decided, why, services.now())
    return with_reason(pool, decided, claims, services.now())
