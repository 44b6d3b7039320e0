"""Secrets with kubeconfigs that agents keep fresh: of clusters that their cloud admits people to, where somebody asks.

The Secret stands in the cluster that was named, which is the cluster itself where none was. A fact of that cluster says
that its agent has something to keep; it is read with what each of the agent's posts reads anyway, so nothing is read or
written where nobody asks. What is to be kept says the record of the cluster that is asked for.
"""

from __future__ import annotations

import json
from dataclasses import replace

from stockyard.domain.clusters.change import ClusterChange, SecretChoice
from stockyard.domain.records import Cluster, Fact
from stockyard.domain.values.rights import ADMIN as ADMIN_RIGHTS
from stockyard.errors import InvalidInput, NotFound
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.machines.observe import KEPT_SECRETS
from stockyard.operations.services import Services
from stockyard.ports import Put, Write
from stockyard.ports.clusters import ADMIN, MintsTokens

CONDITION = "KubeconfigSecretWritten"
"""The condition of a cluster whose Secret is asked for; absent for any other."""
DEFAULT_NAMESPACE = "default"


def kept_secret(services: Services, cluster: Cluster, choice: SecretChoice | None, rights: str) -> dict[str, str]:
    """The Secret as the record of the cluster is to have it; empty for none. ``rights`` are those of who asks.

    ``InvalidInput`` for a cluster that its cloud admits nobody to, for a holder that is not there, and for more rights
    than whoever asks has: who may read the Secret has them.
    """
    if choice is None:
        return {}
    if minter(services, cluster) is None:
        text = "is for clusters that their cloud admits people to; people log in to this one"
        raise InvalidInput.at("/kubeconfig_secret", text)
    holder = cluster if choice.cluster in (None, cluster.name) else _holder(services, str(choice.cluster))
    namespace = choice.namespace or str(cluster.settings.get("namespace") or "") or DEFAULT_NAMESPACE
    secret = {"cluster_id": holder.id, "cluster": holder.name, "namespace": namespace, "role": choice.role}
    if choice.role == ADMIN and rights != ADMIN_RIGHTS and secret != cluster.kubeconfig_secret:
        raise InvalidInput.at("/kubeconfig_secret/role", "admin can be asked for by an administrator alone")
    return secret


def changed_secret(services: Services, cluster: Cluster, change: ClusterChange) -> dict[str, dict[str, str]]:
    """The field of the record that the change asks for; nothing where it does not speak of it."""
    if change.secret is None:
        return {}
    return {"kubeconfig_secret": kept_secret(services, cluster, change.secret.choice, change.rights)}


def secret_writes(services: Services, cluster: Cluster) -> list[Write]:
    """The fact that makes the agent of the cluster that holds the Secret ask for it."""
    secret = cluster.kubeconfig_secret
    if not secret:
        return []
    reference = {"namespace": secret["namespace"], "name": secret_name(services, cluster)}
    return [Put(Fact(_fact_of(cluster), json.dumps(reference), services.now()))]


def look_at_secret(services: Services, cluster: Cluster) -> str | None:
    """Make the agent ask again for a Secret whose fact went, as somebody asked while it was being removed."""
    if not cluster.kubeconfig_secret or cluster.status != "ready":
        return None
    if services.store.get(Fact, _fact_of(cluster)) is not None:
        return None
    services.store.commit(*secret_writes(services, cluster))
    return "asked for its Secret"


def without_condition(cluster: Cluster) -> Cluster:
    """The cluster without what was said of its Secret: what stands elsewhere is asked for anew."""
    kept_conditions = tuple(condition for condition in cluster.conditions if condition.type != CONDITION)
    return replace(cluster, conditions=kept_conditions)


def secret_name(services: Services, cluster: Cluster) -> str:
    """The name of the cluster's Secret."""
    driver = minter(services, cluster)
    if driver is None:
        raise KeyError(cluster.driver)
    return driver.secret_name(cluster)


def minter(services: Services, cluster: Cluster) -> MintsTokens | None:
    """The cluster's driver, if the cloud admits people to the cluster; None where they log in to it in the realm."""
    return services.cluster_drivers[cluster.driver].minter


def _holder(services: Services, name: str) -> Cluster:
    try:
        holder = find_cluster(services, name)
    except NotFound as missing:
        raise InvalidInput.at("/kubeconfig_secret/cluster", missing.detail) from missing
    if holder.status == "deleting":
        raise InvalidInput.at("/kubeconfig_secret/cluster", f"Cluster {holder.name} is being deleted.")
    return holder


def _fact_of(cluster: Cluster) -> str:
    secret = cluster.kubeconfig_secret
    return f"{secret['cluster_id']}/{KEPT_SECRETS}-{cluster.id}/{secret['namespace']}"
