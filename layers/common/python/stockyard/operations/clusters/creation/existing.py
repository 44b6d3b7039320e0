"""A creation whose name a cluster has already: the same cluster, where the request asks for nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from stockyard.domain.clusters.change import SecretChoice
from stockyard.domain.profiles.pack_rights import with_rights
from stockyard.domain.records import UNSEEN, Cluster, Name
from stockyard.domain.values.field_changes import field_changes
from stockyard.domain.values.notes import Note
from stockyard.domain.values.pointers import pointer
from stockyard.errors import ClusterNameInUse, FieldProblem, IllegalTransition
from stockyard.operations.clusters.kept_secrets import kept_secret
from stockyard.operations.profiles.clusters import packs_record
from stockyard.operations.profiles.resolve import Choice, resolve
from stockyard.operations.services import Services
from stockyard.ports import Finding

PRESENT = "There is this cluster already, as it is asked for. Nothing changes."
"""The note at the name of a cluster that was asked for again."""
MOST_NAMED = 5
"""Fields that the refusal of a differing cluster names."""
_FIELDS = ("cloud_account_id", "cluster_type", "driver", "description", "keep_failed", "expires_at", "tags", "limits")


def holder_of(services: Services, name: str) -> Cluster | None:
    """The cluster that has the name, also one that is only being accepted; None for none."""
    name_record = services.store.get(Name, f"cluster/{name}")
    return services.store.get(Cluster, name_record.owner) if name_record else None


def present(cluster: Cluster) -> Finding:
    """The note that the cluster is there."""
    return Finding("/name", Note(f"{PRESENT} Its status is {cluster.status}."), warning=True)


def cluster_in_use(services: Services, name: str) -> Cluster | None:
    """The cluster of that name that stands or is being made. ``IllegalTransition`` for one that is being deleted."""
    cluster = holder_of(services, name)
    if cluster is None or cluster.status in UNSEEN:
        return None
    if cluster.status == "deleting":
        raise IllegalTransition(f"Cluster {name} is being deleted. Create it again when it is gone.")
    return cluster


def check_no_difference(
    services: Services,
    cluster: Cluster,
    draft: Cluster,
    *,
    minor: str | None,
    choices: Sequence[Choice],
    secret: SecretChoice | None,
    rights: str,
) -> None:
    """``ClusterNameInUse`` at each field in which ``draft`` would be another cluster than the one that has its name.

    A ``minor`` that nobody names is no difference: the cluster may have been upgraded since.
    """
    pointers = [f"/{name}" for name in _FIELDS if getattr(cluster, name) != getattr(draft, name)]
    if draft.driver == cluster.driver:
        pointers += _setting_pointers(cluster, draft)
    if minor not in (None, cluster.kubernetes_version):
        pointers.append("/kubernetes_version")
    if kept_secret(services, cluster, secret, rights) != cluster.kubeconfig_secret:
        pointers.append("/kubeconfig_secret")
    former = packs_record(services, cluster).profiles
    if resolve(services, with_rights(choices, rights), cluster.driver, former).profiles != former:
        pointers.append("/profiles")
    if pointers:
        raise refusal(cluster, pointers)


def refusal(cluster: Cluster, pointers: Sequence[str]) -> ClusterNameInUse:
    """The refusal of a request that asks for another cluster of the name."""
    surplus = len(pointers) - MOST_NAMED
    names = ", ".join(pointers[:MOST_NAMED]) + (f" and {surplus} more" if surplus > 0 else "")
    text = f"There is a cluster called {cluster.name}, and it differs at {names}. Change it with apply or update."
    problems = [FieldProblem(pointer, "differs from the cluster of this name") for pointer in pointers]
    return ClusterNameInUse(text, errors=problems)


def _setting_pointers(cluster: Cluster, draft: Cluster) -> list[str]:
    """Pointers of the settings that differ. What an older record does not have is read with its default of today."""
    from stockyard.domain.models.clusters.clusters import changed_settings  # loads pydantic

    former = changed_settings(cluster, cluster.settings)
    changes = field_changes(former, {**former, **draft.settings}, ("settings",))
    return [pointer(*change.path) for change in changes]
