"""A control plane that lacks members is completed by an operation that begins by itself: after the creation of a
cluster with several, and when one of them has died."""

from __future__ import annotations

from stockyard.domain.records import Cluster
from stockyard.errors import Conflict, IllegalTransition
from stockyard.lifecycle.change_phases import CHANGE_CLUSTER
from stockyard.lifecycle.cluster import MOVES
from stockyard.lifecycle.phases import DEGRADED
from stockyard.operations.clusters.begin import begin
from stockyard.operations.clusters.members import SIZE, lacks_members, member_claims, wanted_size
from stockyard.operations.clusters.reconfigure import current_operation
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.services import Services
from stockyard.ports import Replace
from stockyard.ports.clusters import BalancesMembers


def complete_members(services: Services, cluster_id: str) -> bool:
    """Begin to complete the control plane of a ready cluster. True when that has begun.

    One that could not be completed is not tried again by itself: a person has to do something about it first.
    """
    cluster = services.store.get(Cluster, cluster_id)
    if cluster is None or cluster.status != "ready" or _is_degraded(cluster):
        return False
    driver: object = services.cluster_drivers.get(cluster.driver)
    current = current_operation(services, cluster)
    busy = current is not None and current.status == "running"
    if busy or not isinstance(driver, BalancesMembers) or not lacks_members(services, cluster):
        return False
    present, size = len(member_claims(services, cluster.id)) or 1, wanted_size(cluster)
    text = f"The control plane has {present} of {size} members, or one of them is gone: it is completed."
    transition = MOVES.transition(cluster.status, cluster.status, "ControlPlaneIncomplete", text)
    change = {"pointer": f"/settings/{SIZE}", "before": present, "after": size}
    changed, writes = begin(services, WORKFLOW_ACTOR, CHANGE_CLUSTER, cluster, cluster, transition, changes=[change])
    try:
        services.store.commit(Replace(changed), *writes)
    except (Conflict, IllegalTransition):
        return False
    return True


def _is_degraded(cluster: Cluster) -> bool:
    return any(condition.type == DEGRADED and condition.status == "True" for condition in cluster.conditions)
