"""A ready cluster begins anew from a snapshot of its etcd: what speaks against it, what it forgets, and its beginning.

What is done is in ``restoring``: the operation is a change of the cluster like any other.
"""

from __future__ import annotations

import json
from typing import Any

from stockyard.domain.clusters.kubernetes_minors import following
from stockyard.domain.records import Cluster, Fact, NodeClaim
from stockyard.domain.values import times
from stockyard.errors import IllegalTransition, NotFound
from stockyard.lifecycle.change_phases import CHANGE_CLUSTER
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.pools.pool import living
from stockyard.operations.clusters.changes.alignment import aligned
from stockyard.operations.clusters.changes.begin import begin
from stockyard.operations.clusters.changes.prices import items_now
from stockyard.operations.clusters.changes.reconfigure import current_operation
from stockyard.operations.clusters.members.members import member_claims, node_of_member, wanted_size
from stockyard.operations.clusters.snapshots.restoring import PHASE, RESTORE, younger
from stockyard.operations.clusters.snapshots.snapshots import keeper_of, snapshot_work
from stockyard.operations.engine.advance import until_written
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.pricing import plan_of, price
from stockyard.operations.services import Services
from stockyard.ports import Create, Put, Replace
from stockyard.ports.snapshots import Snapshot

LATEST = "latest"
POINTER = "/restore"


@until_written("cluster changes too often to be restored")
def start_restore(services: Services, id_or_name: str, reference: str, actor: str, request_id: str) -> Cluster:
    """The cluster, whose control plane begins anew from the snapshot of that id, or from the ``latest``.

    ``IllegalTransition`` unless it is ready and nothing works on it, or when the snapshot is of a minor that its
    machines cannot go on from; ``NotFound`` without the snapshot.
    """
    cluster, snapshot = _checked(services, id_or_name, reference)
    text = f"The control plane begins anew from the snapshot {snapshot.id}."
    transition = MOVES.transition(cluster.status, cluster.status, "Restoring", text)
    change = {"pointer": POINTER, "before": None, "after": snapshot.id}
    changed, writes = begin(services, actor, CHANGE_CLUSTER, cluster, cluster, transition, changes=[change])
    request = {"operation": changed.operation_id, "snapshot": snapshot.id, "stored_at": snapshot.stored_at, "claim": ""}
    fact = Fact(f"{cluster.id}/{RESTORE}", json.dumps(request), services.now())
    audit = services.audit_record(actor, "RestoreCluster", cluster.id, request_id, text)
    services.store.commit(Replace(changed), Create(audit), Put(fact), *writes)
    return changed


def plan_restore(services: Services, id_or_name: str, reference: str) -> dict[str, Any]:
    """The dry run: which members and nodes go, which come, in what order, and what is forgotten. The price stays."""
    cluster, snapshot = _checked(services, id_or_name, reference)
    members = living(member_claims(services, cluster.id))
    nodes = younger(services, cluster, snapshot.stored_at)
    names = [node_of_member(claim) for claim in members] or [str(cluster.instance_id)]
    size, items = wanted_size(cluster), items_now(services, cluster)
    return {
        **plan_of(
            items,
            changes=[{"pointer": POINTER, "before": None, "after": snapshot.id}],
            deletes=[{"kind": "node", "name": name} for name in (*names, *(claim.name for claim in nodes))],
            creates=[{"kind": "node claim", "name": f"member {number} of {size}"} for number in range(1, size + 1)],
            warnings=[{"pointer": "/snapshot", "detail": text} for text in _forgotten(services, snapshot, nodes)],
        ),
        "price_before": price(items),
        "steps": _steps(snapshot, names, nodes, size),
    }


def _steps(snapshot: Snapshot, names: list[str], nodes: list[NodeClaim], size: int) -> list[str]:
    steps = [
        f"Make a member that begins from the snapshot {snapshot.id}; the API goes on as it is meanwhile.",
        f"Send requests to it alone, and no more to {', '.join(names)}: the API is away for about a minute.",
        f"End {', '.join(names)} and what belonged to the first member, its volume.",
    ]
    if nodes:
        steps.append(f"Replace {', '.join(claim.name for claim in nodes)}, which the snapshot does not know.")
    if size > 1:
        steps.append(f"Add members one after the other until there are {size}.")
    return steps


def _forgotten(services: Services, snapshot: Snapshot, nodes: list[NodeClaim]) -> list[str]:
    minutes = int((services.clock.now() - times.from_text(snapshot.stored_at)).total_seconds() // 60)
    texts = [
        f"Everything that was written to the cluster since {snapshot.stored_at} is forgotten: {minutes // 60} h"
        f" {minutes % 60} min. Pods that run go on; what the snapshot does not know is ended, and what it knows begins."
    ]
    if nodes:
        texts.append(f"{len(nodes)} nodes have come since then. Pods on them begin elsewhere.")
    return texts


def _checked(services: Services, id_or_name: str, reference: str) -> tuple[Cluster, Snapshot]:
    cluster = aligned(services, find_cluster(services, id_or_name))
    if cluster.status != "ready":
        raise IllegalTransition(f"The cluster is {cluster.status}; only a ready one can be restored.")
    current = current_operation(services, cluster)
    if current is not None and current.status == "running":
        text = f"Operation {current.id} ({current.kind}) is still at work on the cluster."
        raise IllegalTransition(f"{text} Cancel it first when it cannot go on.")
    driver = keeper_of(services, cluster)
    if PHASE not in services.procedure(CHANGE_CLUSTER, cluster.driver).names:
        raise IllegalTransition(f"Clusters made by the driver {cluster.driver} are not restored by Stockyard.")
    work = snapshot_work(services, cluster)
    name = reference if reference != LATEST else next((each.id for each in driver.snapshots(work)), "")
    snapshot = driver.snapshot(work, name) if name else None
    if snapshot is None:
        raise NotFound(f"The cluster has no snapshot {reference}." if name else "The cluster has no snapshot yet.")
    _check_minor(cluster, snapshot)
    return cluster, snapshot


def _check_minor(cluster: Cluster, snapshot: Snapshot) -> None:
    """Machines have the cluster's minor, and an API server reads what one minor before it has written."""
    before = snapshot.kubernetes_version
    if before and cluster.kubernetes_version not in (before, following(before)):
        raise IllegalTransition(
            f"The snapshot {snapshot.id} is of Kubernetes {before}, and the cluster has {cluster.kubernetes_version}:"
            " it can be restored from snapshots of this minor and the one before."
        )
