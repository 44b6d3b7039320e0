"""A control plane that lacks members is completed by an operation that begins by itself: after the creation of a
cluster with several, when one of them has died, and when one has been unhealthy for too long."""

from __future__ import annotations

from collections.abc import Sequence

from stockyard.domain.records import Cluster, NodeClaim, Operation
from stockyard.errors import Conflict, IllegalTransition
from stockyard.lifecycle.change_phases import CHANGE_CLUSTER
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.clusters.member_health import COMPLETE, completeness, condition_of
from stockyard.lifecycle.phases import DEGRADED
from stockyard.operations.clusters.changes.begin import begin
from stockyard.operations.clusters.changes.reconfigure import current_operation
from stockyard.operations.clusters.members.members import SIZE, lacks_members, member_claims, wanted_size
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.fleet.pools import conditions
from stockyard.operations.services import Services
from stockyard.ports import Replace


def complete_members(services: Services, cluster_id: str, unhealthy: Sequence[NodeClaim] = ()) -> bool:
    """Begin to complete the control plane of a ready cluster, or to replace these members. True when that has begun.

    One that could not be completed is not tried again by itself: a person has to do something about it first, and the
    cluster's condition says so.
    """
    cluster = services.store.get(Cluster, cluster_id)
    if cluster is None or cluster.status != "ready":
        return False
    driver = services.cluster_drivers.get(cluster.driver)
    current = current_operation(services, cluster)
    busy = current is not None and current.status == "running"
    if busy or driver is None or driver.balancer is None:
        return False
    if _is_degraded(cluster):
        if lacks_members(services, cluster):
            _say_what_is_missing(services, cluster, current)
        return False
    present, size = len(member_claims(services, cluster.id)) or 1, wanted_size(cluster)
    if lacks_members(services, cluster):
        reason = "ControlPlaneIncomplete"
        text = f"The control plane has {present} of {size} members, or one of them is gone: it is completed."
    elif unhealthy:
        reason = "MemberUnhealthy"
        text = " ".join([part.message for claim in unhealthy if (part := condition_of(claim)) is not None])
        text += f" That is so for more than {services.settings.unhealthy_member_seconds} seconds: it is replaced."
        present -= len(unhealthy)
    else:
        return False
    transition = MOVES.transition(cluster.status, cluster.status, reason, text)
    claims, now = member_claims(services, cluster.id), services.now()
    part = completeness(claims, now, size)
    condition = MOVES.condition(cluster, COMPLETE, part.status, part.reason, part.message, now)
    change = {"pointer": f"/settings/{SIZE}", "before": present, "after": size}
    changed, writes = begin(services, WORKFLOW_ACTOR, CHANGE_CLUSTER, cluster, condition, transition, changes=[change])
    try:
        services.store.commit(Replace(changed), *writes)
    except (Conflict, IllegalTransition):
        return False
    return True


def _say_what_is_missing(services: Services, cluster: Cluster, current: Operation | None) -> None:
    """Say that members are missing, and what has to be done before they are replaced."""
    name = current.id if current is not None else "the last operation"
    text = f"They are replaced when {name}, which has failed, was resumed."
    claims, now = member_claims(services, cluster.id), services.now()
    conditions.show(services, cluster, [completeness(claims, now, wanted_size(cluster), more=text)])


def _is_degraded(cluster: Cluster) -> bool:
    return any(condition.type == DEGRADED and condition.status == "True" for condition in cluster.conditions)
