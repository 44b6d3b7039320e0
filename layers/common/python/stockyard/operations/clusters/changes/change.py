"""Change what may change of a cluster: description, tags, settings, profiles and the minor of Kubernetes.

What is wanted is on the record at once. What stands in the cloud gets it in the background, by an operation that begins
with the change; tags, while another one works on the cluster, by that one or after it. A change that is to wait for
another one is on the record when its turn comes: see ``queue``.
"""

from __future__ import annotations

from dataclasses import replace

from stockyard.domain.clusters.change import ClusterChange
from stockyard.domain.records import Cluster, Operation
from stockyard.errors import Conflict, IllegalTransition, PreconditionFailed
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.clusters.cluster_changes import is_unfinished
from stockyard.lifecycle.operation import operation_succeeded
from stockyard.lifecycle.phases import RETAG_CLUSTER
from stockyard.operations.clusters.changes.alignment import aligned
from stockyard.operations.clusters.changes.begin import begin
from stockyard.operations.clusters.changes.reconfigure import (
    check_target,
    current_operation,
    operation_kind,
    warnings_of,
)
from stockyard.operations.clusters.creation.expiry import check_expiry_change
from stockyard.operations.clusters.kept_secrets import changed_secret, secret_writes, without_condition
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.engine.tell import tell
from stockyard.operations.profiles.clusters import profile_change
from stockyard.operations.quotas.budget_notes import budget_writes
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace, Write

_OF_RECORD = frozenset({"description", "document", "limits", "expires_at"})
"""What changes on the record alone."""


def change_cluster(
    services: Services,
    id_or_name: str,
    version: int | None,
    change: ClusterChange,
    *,
    actor: str,
    request_id: str,
    queued: Operation | None = None,
) -> tuple[Cluster, list[dict[str, str]]]:
    """The changed cluster, and the warnings that its dry run has. ``operation_id`` is the operation that brings
    what is there to it, where one is needed and could begin at once. ``queued`` is that operation where it has waited
    for its turn.

    ``PreconditionFailed`` unless the cluster stands at ``version``; ``IllegalTransition`` when it is being deleted, or
    when settings or version are to change while something else works on it; ``InvalidInput`` for what cannot be.
    """
    cluster = aligned(services, find_cluster(services, id_or_name))
    target = change.target(cluster)
    kind, warnings = _checked(services, cluster, target, version, change)
    choices = change.profiles
    packs = None if choices is None else profile_change(services, cluster, target, choices, change.rights)
    of_secret = changed_secret(services, cluster, change)
    names = ("manifest" if name == "document" else name for name in (*change.fields(), *of_secret))
    message = f"Changed: {', '.join(names) or 'nothing'}."
    audit = services.audit_record(actor, "ChangeCluster", cluster.id, request_id, message)
    fields = {name: value for name, value in change.fields().items() if name in _OF_RECORD}
    changed = replace(target, **fields)
    changed = replace(changed, kubeconfig_secret=of_secret.get("kubeconfig_secret", changed.kubeconfig_secret))
    if changed.kubeconfig_secret != cluster.kubeconfig_secret:
        changed = without_condition(changed)
    if change.tags is not None:
        changed = MOVES.change_tags(changed, change.tags, services.now())
        kind = kind or (RETAG_CLUSTER if _may_retag(services, cluster) else None)
    if queued is not None:
        changed = replace(changed, queue=changed.queue[1:])
    transition = Transition("Cluster", cluster.status, cluster.status, "Changed", message)
    if kind:
        changed, writes = begin(services, actor, kind, cluster, changed, transition, profiles=packs, queued=queued)
    else:
        changed = MOVES.touch(changed, services.now(), sequence=cluster.sequence + 1)
        writes = [*tell(services, actor, changed, transition), *_nothing_to_do(services, actor, queued)]
        writes += packs.writes(services) if packs else []
    writes += budget_writes(services.now(), cluster.limits, changed.limits)
    writes += secret_writes(services, changed) if of_secret else []
    try:
        services.store.commit(Replace(changed), Create(audit), *writes)
    except Conflict as conflict:
        raise PreconditionFailed("The cluster or its profile was changed by someone else just now.") from conflict
    return changed, warnings


def _checked(
    services: Services, cluster: Cluster, target: Cluster, version: int | None, change: ClusterChange
) -> tuple[str | None, list[dict[str, str]]]:
    """The kind of operation that the change needs, None for none, and what it is warned of."""
    # While an operation runs the version rises all the time: that one is at work says more than that it has risen.
    kind = operation_kind(services, cluster, target, profiles=change.profiles is not None)
    if version not in (None, cluster.version):
        raise PreconditionFailed(f"The cluster is at version {cluster.version}, not {version}.")
    if cluster.status == "deleting":
        raise IllegalTransition("The cluster is being deleted.")
    check_expiry_change(services, cluster, change)
    if not kind or target is cluster:
        return kind, []
    # Asked for before the change is written: afterwards the nodes of before would be those of the target.
    return kind, warnings_of(services, cluster, target, check_target(services, cluster, target))


def _nothing_to_do(services: Services, actor: str, queued: Operation | None) -> list[Write]:
    """The end of an operation whose change was the record's alone, or was there when its turn came."""
    if queued is None:
        return []
    over = replace(queued, status="succeeded", updated_at=services.now(), version=queued.version + 1)
    over = replace(over, sequence=queued.sequence + 1)
    return [Replace(over), *tell(services, actor, over, operation_succeeded(over))]


def _may_retag(services: Services, cluster: Cluster) -> bool:
    """Whether tags can be put on now. A change that has failed is finished first, so that it can still be resumed."""
    current = current_operation(services, cluster)
    busy = current is not None and current.status == "running"
    return cluster.status == "ready" and not busy and not is_unfinished(current)
