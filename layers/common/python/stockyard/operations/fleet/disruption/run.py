"""One pass over the disruption of a cluster: decide, confirm, carry out, one step at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from stockyard.domain.pools.budgets import DRIFTED, EXPIRED, UNDERUTILIZED
from stockyard.domain.pools.disruption_records import IDLE, PROPOSED, REPLACING, ClusterDisruption
from stockyard.domain.pools.records import DYNAMIC, Pool
from stockyard.domain.pools.workload_records import WorkloadReport
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.values import times
from stockyard.errors import Conflict
from stockyard.lifecycle.disruption.vanished import NODE_GONE
from stockyard.lifecycle.nodes.interruption import INTERRUPTED
from stockyard.lifecycle.phases import DEGRADED
from stockyard.lifecycle.pools.pool import later_than
from stockyard.operations.fleet.disruption.at_once import evacuate, repair
from stockyard.operations.fleet.disruption.carry_out import (
    CONFIRM_SECONDS,
    LOOK_SECONDS,
    advance,
    is_proposed,
    propose,
    start,
)
from stockyard.operations.fleet.disruption.decide import decide, holding, interrupted, without_types
from stockyard.operations.fleet.disruption.fleet import View, view_of
from stockyard.operations.fleet.disruption.pause import paused_by
from stockyard.operations.fleet.disruption.record import write
from stockyard.operations.fleet.disruption.vanished_nodes import with_vanished
from stockyard.operations.fleet.pools.pools import claims_of, pools_of
from stockyard.operations.fleet.pools.reconcile import reconcile
from stockyard.operations.fleet.state import workload_of
from stockyard.operations.machines.attention import attend, is_known_well
from stockyard.operations.machines.pending_pods import SETTLING_SECONDS
from stockyard.operations.node_claims.reservations import leave_in_time, watch_end
from stockyard.operations.node_claims.vanished_nodes import note_nodes
from stockyard.operations.services import Services
from stockyard.ports import Check, Remove
from stockyard.scheduling.consolidation.model import Decision, RunningNode, Settings
from stockyard.scheduling.consolidation.worth import possible_saving
from stockyard.scheduling.packing.price import Answers

ATTEND_SECONDS = 600
"""For how long an agent comes often once there is something to decide."""
MISSED_SECONDS = 1800
"""Nodes that pools make within so many seconds after others have left may be for the pods of these."""
CAREFUL_NODES = 50
"""In a cluster of so few nodes every decision is careful: it saves nearly as much, and costs little to find."""
CAREFUL_SECONDS = 86_400
"""For how long decisions are careful after that."""
REST_SECONDS = 3600
"""For how long no node leaves for its price after a careful decision whose pods have found no room either."""
DEADLINE_SECONDS = 15
"""After so many seconds the best of what was found is decided, however slow the machine is: a preview is a request."""
LASTING = frozenset({DRIFTED, EXPIRED})
"""Reasons that a later look would find again: no decision for one of them has to stand for a while first."""
LEAVING_SECONDS = 300
"""When a cluster is looked at again while some of its nodes leave."""
LONGEST_SECONDS = 3600
"""When a cluster is looked at in any case: prices move, and nobody tells of it."""

_ANSWERS = Answers()
"""What looks of one process have found: a cluster in which little has happened has the same problems again."""


def look(services: Services, cluster_id: str) -> Counter[str]:
    """Bring the disruption of a cluster one step on; what was done, as counts."""
    counts: Counter[str] = Counter()
    record = services.store.get(ClusterDisruption, cluster_id)
    if record is None:
        return counts
    cluster = services.store.get(Cluster, cluster_id)
    if cluster is None or cluster.status == "deleting":
        with suppress(Conflict):
            services.store.commit(Remove(ClusterDisruption, cluster_id, record.version))
        return counts
    claims = claims_of(services, cluster_id)
    given_back = leave_in_time(services, claims)
    try:
        after = _step(services, cluster, record, claims_of(services, cluster_id) if given_back else claims)
        if after.state == REPLACING and not after.replacements:
            # What comes first is made by the pools, and nothing else would wake them for it.
            reconcile(services, cluster_id)
    except Conflict:
        counts["lost"] += 1
        return counts
    finally:
        watch_end(services, claims)
    # A decision for which nothing has to come may be made, begun and ended by one look.
    is_new = after.decided_at != record.decided_at
    counts["decided"] += record.state == IDLE and is_new
    counts["started"] += record.state != REPLACING and (after.state == REPLACING or (after.state == IDLE and is_new))
    counts["ended"] += after.state == IDLE and (record.state == REPLACING or is_new)
    return counts


def _step(
    services: Services, cluster: Cluster, record: ClusterDisruption, claims: Sequence[NodeClaim]
) -> ClusterDisruption:
    pools = pools_of(services, cluster.id)
    if not pools and record.state != REPLACING and not record.switched_off:
        services.store.commit(Remove(ClusterDisruption, cluster.id, record.version))
        return record
    view, _ = view_now(services, cluster, record, pools, claims)
    if view is not None:
        note_nodes(services, view.notes)
        if view.misses:
            attend(services, cluster.id, ATTEND_SECONDS)
    if view is not None and _is_urgent(view) and _is_fresh(services, cluster):
        # Whatever else is being done: these nodes are lost, or will be soon.
        if view.vanished:
            return repair(services, record, view.vanished, NODE_GONE)
        if view.unready:
            return repair(services, record, view.unready)
        endangered = interrupted(view, record.going)
        if endangered:
            return evacuate(services, record, [view.claims[node.name] for node in endangered])
    if record.state == REPLACING:
        return advance(services, pools, claims, record, view if _is_fresh(services, cluster) else None)
    return _decide(services, cluster, pools, claims, record, view)


def _is_urgent(view: View) -> bool:
    return bool(view.vanished or view.unready or view.replaceable.get(INTERRUPTED))


def view_now(
    services: Services,
    cluster: Cluster,
    record: ClusterDisruption | None,
    pools: Sequence[Pool],
    claims: Sequence[NodeClaim],
) -> tuple[View | None, str]:
    """View of what runs in the cluster; None, and why in words, where nobody knows, or where nothing may leave."""
    if cluster.status != "ready":
        return None, f"The cluster is {cluster.status}."
    if _is_degraded(cluster):
        return None, "The cluster is degraded."
    workload = workload_of(services, cluster.id)
    if workload is None or workload.nodes is None:
        return None, "The cluster's agent has told nothing of its nodes yet."
    view = view_of(services, cluster, pools, claims, workload, paused_by(services, record))
    return with_vanished(view, claims, workload), ""


def _decide(
    services: Services,
    cluster: Cluster,
    pools: Sequence[Pool],
    claims: Sequence[NodeClaim],
    record: ClusterDisruption,
    view: View | None,
) -> ClusterDisruption:
    """Propose a decision, or carry out the one that was proposed."""
    if _pods_found_no_room(pools, claims, record):
        now = services.now()
        rests_until = later_than(now, REST_SECONDS) if is_careful(services, record) else record.rests_until
        care = {"careful_until": later_than(now, CAREFUL_SECONDS), "rests_until": rests_until, "left_at": ""}
        record = write(services, record, None, **care)
    decision = next_decision(services, record, view) if view is not None else None
    if view is None or decision is None:
        fields: dict[str, Any] = {"state": IDLE, "nodes": ()} if record.state == PROPOSED else {}
        if view is not None:
            fields["possible"] = possible_saving(view.fleet)
        return _nothing_now(services, cluster.id, record, view, **fields)
    if not _is_fresh(services, cluster):
        # Before anything is decided, what is known must be true now.
        return write(services, record, due_at=later_than(services.now(), LOOK_SECONDS))
    # What is known has to be as fresh when the decision is confirmed, and when its nodes leave.
    attend(services, cluster.id, ATTEND_SECONDS)
    if not is_proposed(record, view, decision):
        record = propose(services, record, view, decision)
    if decision.reason not in LASTING and services.seconds_since(record.decided_at) < CONFIRM_SECONDS:
        return write(services, record, due_at=later_than(record.decided_at, CONFIRM_SECONDS))
    started = start(services, cluster, pools, record, decision)
    # Where nothing has to come first, nothing is waited for either.
    nothing_comes = started.state == REPLACING and not started.replacements
    return advance(services, pools, claims, started, view) if nothing_comes else started


def _nothing_now(
    services: Services, cluster_id: str, record: ClusterDisruption, view: View | None, **fields: Any
) -> ClusterDisruption:
    """Nothing is to be done until the next look. Whoever takes a report of pods while a look is going on leaves the
    cluster to it, so a look that has not seen the last report is followed by another one soon."""
    due_at = _next_look(services, record, view)
    if services.store.get(WorkloadReport, cluster_id) is None or view is None:
        return write(services, record, due_at=due_at, **fields)
    try:
        check = Check(WorkloadReport, cluster_id, {"sequence": view.sequence})
        return write(services, record, None, (check,), due_at=due_at, **fields)
    except Conflict:
        return write(services, record, due_at=min(due_at, later_than(services.now(), SETTLING_SECONDS)), **fields)


def next_decision(
    services: Services, record: ClusterDisruption | None, view: View, expired: Callable[[], bool] | None = None
) -> Decision | None:
    """Next decision; None for nothing. Once ``expired`` says yes the search for savings ends with what it has; by
    default after ``DEADLINE_SECONDS``."""
    now = services.now()
    careful = is_careful(services, record) or len(view.fleet.nodes) <= CAREFUL_NODES
    ends = expired or services.expires_in(DEADLINE_SECONDS)
    settings = Settings(careful=careful, expired=ends, answers=_ANSWERS)
    if record is None:
        return decide(view, settings)

    def is_held(reason: str, node: RunningNode) -> bool:
        return bool(record.node_held_until(reason, node.pool, view.claims[node.name].id, now))

    replaceable = {
        reason: [node for node in nodes if not is_held(reason, node)] for reason, nodes in view.replaceable.items()
    }
    held_names = {node.name for node in view.fleet.nodes if is_held(UNDERUTILIZED, node)}
    fleet = without_types(holding(view.fleet, held_names), record.held_types(now))
    able = replace(view, replaceable=replaceable, fleet=fleet)
    return decide(able, settings, for_price=not record.no_savings_until(now))


def is_careful(services: Services, record: ClusterDisruption | None) -> bool:
    """Whether the last decisions of the cluster were too tight for how its scheduler spreads pods."""
    return record is not None and services.now() < record.careful_until


def _pods_found_no_room(pools: Sequence[Pool], claims: Sequence[NodeClaim], record: ClusterDisruption) -> bool:
    """Whether nodes were asked for soon after others had left for their price: those that are made in the place of
    others are asked for before these leave."""
    if not record.left_at:
        return False
    dynamic, until = {pool.name for pool in pools if pool.kind == DYNAMIC}, later_than(record.left_at, MISSED_SECONDS)
    return any(claim.pool in dynamic and record.left_at < claim.created_at <= until for claim in claims)


def _is_degraded(cluster: Cluster) -> bool:
    return any(part.type == DEGRADED and part.status == "True" for part in cluster.conditions)


def _is_fresh(services: Services, cluster: Cluster) -> bool:
    """Whether the cluster is known well enough to let nodes go. Its agent is asked to come often when it is not."""
    if is_known_well(services, cluster.id):
        return True
    attend(services, cluster.id, ATTEND_SECONDS)
    return False


def _next_look(services: Services, record: ClusterDisruption, view: View | None) -> str:
    """Moment when something may have changed by itself; whatever else changes tells of it."""
    leaving = view is not None and any(state.disrupting for states in view.states.values() for state in states)
    # Nodes that are on their way out use up budgets until they are gone, of which nobody may tell.
    now = services.now()
    latest = later_than(now, LEAVING_SECONDS if leaving else LONGEST_SECONDS)
    ends = (until for until in (record.rests_until, *record.held_until.values()) if until > now)
    latest = min([latest, *ends])
    if view is None or view.looks_at is None:
        return latest
    # What is due already waits for something that no report tells of, such as an agent that is heard again.
    return min(latest, max(times.to_text(view.looks_at), later_than(now, LOOK_SECONDS)))
