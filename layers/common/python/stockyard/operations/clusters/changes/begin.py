"""Writes at the beginning of an operation that changes a ready cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from stockyard.domain.pools.node_groups import follows
from stockyard.domain.records import Cluster, Operation
from stockyard.domain.values import ids
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.change_phases import UPGRADE_CLUSTER
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.clusters.cluster_changes import Difference, differences, is_unfinished
from stockyard.lifecycle.clusters.repave import OF_MEMBERS, approval_of, reasons
from stockyard.lifecycle.clusters.repave import PHASE as APPROVAL
from stockyard.lifecycle.operation import new_operation
from stockyard.operations.clusters.changes.reconfigure import check_alone, current_operation, replaced_pools
from stockyard.operations.engine.advance import change_writes
from stockyard.operations.profiles.clusters import ProfileChange
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace, Write

MEMBERS = "members"
"""The phase that replaces members of the control plane which were made before a moment on the cluster's record."""
SKEW = "version_skew"
"""The phase that lets new nodes have the control plane's minor."""


def begin(
    services: Services,
    actor: str,
    kind: str,
    before: Cluster,
    target: Cluster,
    transition: Transition,
    *,
    changes: Iterable[Difference] = (),
    profiles: ProfileChange | None = None,
    queued: Operation | None = None,
) -> tuple[Cluster, list[Write]]:
    """The cluster with the operation that changes its resources, and the other records of the same write. ``changes``
    are those that are no fields of a patch; ``queued`` is the operation where it has waited for its turn.
    ``InvalidInput`` for ``profiles`` that cannot change with the rest."""
    procedure = services.procedure(kind, target.driver)
    new = new_operation(services.new_id(ids.OPERATION), procedure, target, actor, services.now())
    operation = new if queued is None else _out_of_queue(queued, new)
    why = reasons(before, target, replaced_pools(services, before, target)) if APPROVAL in procedure.names else ()
    if profiles is not None:
        check_alone(before, why)
        changes = (*changes, profiles.entry)
    current = current_operation(services, before)
    fresh = (*differences(before, target), *changes)
    if not fresh and current is not None and is_unfinished(current):
        fresh = current.changes  # the same as before, begun anew
    operation = replace(operation, changes=fresh, repave=approval_of(before, why) if why else {})
    changed = replace(target, pools_follow=target.pools_follow or follows(target))
    if kind == UPGRADE_CLUSTER and SKEW in procedure.names:
        # The API server is not there yet, and no kubelet may be newer.
        changed = replace(changed, nodes_version=before.node_minor)
    if MEMBERS in procedure.names and OF_MEMBERS & {reason["code"] for reason in why}:
        changed = replace(changed, members_since=services.now())
    change = MOVES.start_change(changed, current, operation, procedure, services.now())
    change = replace(change, transitions=(transition, *change.transitions))
    started_cluster, started_operation, writes = change_writes(services, actor, change)
    if profiles is not None:
        writes += profiles.writes(services)
    return started_cluster, [(Create if queued is None else Replace)(started_operation), *writes]


def _out_of_queue(queued: Operation, new: Operation) -> Operation:
    """The operation as it begins: under its own id, with the phases of now."""
    return replace(
        queued,
        kind=new.kind,
        status="running",
        phases=new.phases,
        updated_at=new.updated_at,
        version=queued.version + 1,
    )
