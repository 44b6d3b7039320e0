"""Change what may change of a cluster: description and tags; settings are fixed once it is being made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.errors import Conflict, IllegalTransition, PreconditionFailed
from stockyard.lifecycle.change import Transition
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.engine.tell import tell
from stockyard.operations.services import Services
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
    cluster = find_cluster(services, id_or_name)
    if cluster.version != version:
        raise PreconditionFailed(f"The cluster is at version {cluster.version}, not {version}.")
    if cluster.status == "deleting":
        raise IllegalTransition("The cluster is being deleted.")
    given_fields = {"description": description, "tags": tags}
    fields: dict[str, Any] = {name: value for name, value in given_fields.items() if value is not None}
    stamped = {"updated_at": services.now(), "version": version + 1, "sequence": cluster.sequence + 1}
    changed: Cluster = replace(cluster, **{**fields, **stamped})
    message = f"Changed: {', '.join(fields) or 'nothing'}."
    transition = Transition("Cluster", cluster.status, cluster.status, "Changed", message)
    audit = services.audit_record(actor, "ChangeCluster", cluster.id, request_id, message)
    try:
        services.store.commit(Replace(changed), Create(audit), *tell(services, actor, changed, transition))
    except Conflict as conflict:
        raise PreconditionFailed("The cluster was changed by someone else just now.") from conflict
    return changed
