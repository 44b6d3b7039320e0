"""Change what may change of a cluster: description and tags; settings are fixed once it is being made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stockyard.domain import ids
from stockyard.domain.records import AuditRecord, Cluster
from stockyard.errors import Conflict, IllegalTransition, PreconditionFailed
from stockyard.lifecycle.change import Happening
from stockyard.operations.advance import find
from stockyard.operations.services import Services
from stockyard.operations.tell import cluster_writes
from stockyard.ports import Create, Replace


def change_cluster(
    services: Services,
    id_or_name: str,
    version: int,
    *,
    description: str | None,
    tags: dict[str, str] | None,
    actor: str,
    request_id: str,
) -> Cluster:
    """The changed cluster. None leaves a field as it is. ``PreconditionFailed`` unless it stands at ``version``."""
    cluster = find(services, id_or_name)
    if cluster.version != version:
        raise PreconditionFailed(f"The cluster is at version {cluster.version}, not {version}.")
    if cluster.status == "deleting":
        raise IllegalTransition("The cluster is being deleted.")
    named = [n for n, v in (("description", description), ("tags", tags)) if v is not None]
    changed = replace(
        cluster,
        description=cluster.description if description is None else description,
        tags=cluster.tags if tags is None else tags,
        updated_at=services.now(),
        version=version + 1,
        sequence=cluster.sequence + 1,
    )
    what = Happening("Cluster", cluster.status, cluster.status, "Changed", f"Changed: {', '.join(named) or 'nothing'}.")
    audit = AuditRecord(
        services.new_id(ids.AUDIT), services.now(), actor, "ChangeCluster", cluster.id, "done", request_id, what.message
    )
    try:
        services.store.commit(Replace(changed), Create(audit), *cluster_writes(services, actor, changed, what))
    except Conflict as conflict:
        raise PreconditionFailed("The cluster was changed by someone else just now.") from conflict
    return changed


def plan_change(
    cluster: Cluster, version: int, *, description: str | None, tags: dict[str, str] | None
) -> dict[str, Any]:
    """The dry run of a change: each field that would differ, now and then."""
    if cluster.version != version:
        raise PreconditionFailed(f"The cluster is at version {cluster.version}, not {version}.")
    wanted = {"description": description, "tags": tags}
    changes = [
        {"pointer": f"/{name}", "before": getattr(cluster, name), "after": value}
        for name, value in wanted.items()
        if value is not None and value != getattr(cluster, name)
    ]
    free = {"currency": "USD", "hour": 0, "month": 0, "complete": True, "items": []}
    return {"creates": [], "changes": changes, "deletes": [], "price": free, "rejected": [], "warnings": []}
