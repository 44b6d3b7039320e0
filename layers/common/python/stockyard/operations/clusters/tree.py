"""A cluster with everything below it, for people."""

from __future__ import annotations

from typing import Any

from stockyard.domain.records import Cluster, Operation
from stockyard.operations.clusters.plan import worker_groups
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.services import Services


def node(
    kind: str, name: str, status: str, *, id: str | None = None, message: str = "", children: list[Any] | None = None
) -> dict[str, Any]:
    """One node: what it is, how it is, and what is below."""
    return {"kind": kind, "name": name, "id": id, "status": status, "message": message, "children": children or []}


def cluster_tree(services: Services, cluster: Cluster) -> dict[str, Any]:
    """The cluster, its operation's phases, the resources on its ledger, its pools."""
    operation = services.store.get(Operation, cluster.operation_id or "")
    below: list[dict[str, Any]] = []
    if operation is not None:
        phases = [node("phase", p.name, p.state, message=p.message) for p in operation.phases]
        if operation.error is not None and operation.error.console:
            phases.append(node("console", operation.error.phase, "failed", message=operation.error.console))
        below.append(node("operation", operation.kind, operation.status, id=operation.id, children=phases))
    below += [
        node(line.kind, line.key, line.state, id=line.vendor_id or None, message=line.region)
        for line in lines_of(services, cluster.id)
    ]
    below += [
        node("pool", str(g["name"]), "waiting", message="Pools are stored; nodes come with a later release.")
        for g in worker_groups(cluster.settings)
    ]
    ready = next((c.message for c in cluster.conditions if c.type == "Ready"), "")
    return node("cluster", cluster.name, cluster.status, id=cluster.id, message=ready, children=below)
