"""Replace the nodes of a ready cluster as they are: all of them, or the control plane's members for their certificates.

Nodes that were made before a moment on the cluster's record are replaced by the verbs that replace changed ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.domain.values import times
from stockyard.errors import IllegalTransition
from stockyard.lifecycle.change_phases import CHANGE_CLUSTER
from stockyard.lifecycle.clusters.change_steps import steps
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.clusters.cluster_changes import Difference
from stockyard.lifecycle.clusters.repave import RENEWAL, REPAVE, reasons
from stockyard.lifecycle.pools.pool import living
from stockyard.lifecycle.procedure import Procedure
from stockyard.operations.clusters.changes.alignment import aligned
from stockyard.operations.clusters.changes.begin import begin
from stockyard.operations.clusters.changes.prices import items_now
from stockyard.operations.clusters.changes.reconfigure import current_operation
from stockyard.operations.clusters.members.replaced_members import replaced_members
from stockyard.operations.engine.advance import until_written
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.fleet.pools.pools import claims_of
from stockyard.operations.pricing import plan_of, price
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace

CERTIFICATES = timedelta(days=365)
"""How long kubeadm's certificates are good, from the moment at which a member joins."""
MEMBERS, POOLS = "members", "pools_replaced"
"""The phase that replaces members of a control plane, and what runs the one that replaces nodes of pools."""


@until_written("cluster changes too often for its nodes to be replaced")
def start_repave(services: Services, id_or_name: str, actor: str, request_id: str) -> Cluster:
    """The cluster, every node of whose pools, and every member of whose control plane that is a claim, is replaced.

    ``IllegalTransition`` unless it is ready, nothing works on it, and its driver replaces nodes.
    """
    cluster, procedure = _ready(services, id_or_name, POOLS)
    target, change = _repaved(services, cluster, procedure)
    return _started(services, cluster, target, change, actor, request_id, "RepaveCluster", "Every node is replaced.")


@until_written("cluster changes too often for its certificates to be renewed")
def renew_certificates(services: Services, id_or_name: str, actor: str, request_id: str) -> Cluster:
    """The cluster, whose control plane's members are replaced one after the other: new ones have new certificates.

    ``IllegalTransition`` unless it is ready, nothing works on it, and its driver replaces members.
    """
    cluster, _ = _ready(services, id_or_name, MEMBERS)
    target, change = _renewed(services, cluster)
    text = "Members of the control plane are replaced, so that their certificates are new."
    return _started(services, cluster, target, change, actor, request_id, "RenewCertificates", text)


def plan_repave(services: Services, id_or_name: str) -> dict[str, Any]:
    """The dry run of a repave: which nodes go, in which order. The price stays."""
    cluster, procedure = _ready(services, id_or_name, POOLS)
    target, change = _repaved(services, cluster, procedure)
    return _plan(services, cluster, target, procedure, change, members_alone=False)


def plan_renewal(services: Services, id_or_name: str) -> dict[str, Any]:
    """The dry run of a renewal."""
    cluster, procedure = _ready(services, id_or_name, MEMBERS)
    target, change = _renewed(services, cluster)
    return _plan(services, cluster, target, procedure, change, members_alone=True)


def certificates_view(services: Services, cluster: Cluster) -> dict[str, Any]:
    """The certificates of the control plane as a ``CertificatesView`` document."""
    operation = current_operation(services, cluster)
    renews = operation is not None and any(change["pointer"] == RENEWAL for change in operation.changes)
    running = operation is not None and operation.status == "running"
    return {
        "expire_at": cluster.certificates_expire_at,
        "renewed_since": cluster.members_since or None,
        "operation_id": operation.id if operation is not None and renews and running else None,
    }


def _repaved(services: Services, cluster: Cluster, procedure: Procedure) -> tuple[Cluster, Difference]:
    now = services.now()
    members_since = now if MEMBERS in procedure.names else cluster.members_since
    target: Cluster = replace(cluster, nodes_since=now, members_since=members_since)
    return target, {"pointer": REPAVE, "before": cluster.nodes_since or None, "after": now}


def _renewed(services: Services, cluster: Cluster) -> tuple[Cluster, Difference]:
    now = services.now()
    ends_at = times.to_text(services.clock.now() + CERTIFICATES)
    difference = {"pointer": RENEWAL, "before": cluster.certificates_expire_at, "after": ends_at}
    return replace(cluster, members_since=now), difference


def _ready(services: Services, id_or_name: str, work: str) -> tuple[Cluster, Procedure]:
    """The cluster and the rows of its changes, among which one does this work."""
    cluster = aligned(services, find_cluster(services, id_or_name))
    if cluster.status != "ready":
        raise IllegalTransition(f"The cluster is {cluster.status}; only a ready one can be changed.")
    current = current_operation(services, cluster)
    if current is not None and current.status == "running":
        raise IllegalTransition(f"Operation {current.id} ({current.kind}) is still at work on the cluster.")
    try:
        procedure = services.procedure(CHANGE_CLUSTER, cluster.driver)
    except KeyError:
        procedure = None
    if procedure is None or work not in {name for phase in procedure.phases for name in (phase.name, phase.runs)}:
        subject = "members of its control plane" if work == MEMBERS else "nodes"
        raise IllegalTransition(
            f"Clusters made by the driver {cluster.driver} do not have {subject} replaced by Stockyard."
        )
    return cluster, procedure


def _started(
    services: Services,
    cluster: Cluster,
    target: Cluster,
    change: Difference,
    actor: str,
    request_id: str,
    action: str,
    text: str,
) -> Cluster:
    transition = MOVES.transition(cluster.status, cluster.status, "Changed", text)
    changed, writes = begin(services, actor, CHANGE_CLUSTER, cluster, target, transition, changes=[change])
    audit = services.audit_record(actor, action, cluster.id, request_id, text)
    services.store.commit(Replace(changed), Create(audit), *writes)
    return changed


def _plan(
    services: Services,
    cluster: Cluster,
    target: Cluster,
    procedure: Procedure,
    change: Mapping[str, Any],
    *,
    members_alone: bool,
) -> dict[str, Any]:
    items = items_now(services, cluster)
    claims = living(claims_of(services, cluster.id))
    workers = [claim.name for claim in claims if claim.pool and not claim.control_plane and not members_alone]
    why = reasons(cluster, target, ())
    members = replaced_members(services, cluster, why)
    replaced_nodes = [*(("member", name) for name in members), *(("node", name) for name in workers)]
    return {
        **plan_of(
            items,
            changes=[change],
            deletes=[{"kind": kind, "name": name} for kind, name in replaced_nodes],
            creates=[{"kind": kind, "name": f"in the place of {name}"} for kind, name in replaced_nodes],
        ),
        "price_before": price(items),
        "steps": steps(procedure, cluster, target, why, members=members),
    }
