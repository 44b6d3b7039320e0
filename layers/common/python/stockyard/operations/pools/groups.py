"""Node groups of a cluster's settings: the pools that they become, and the provider that serves them.

The provider is made when the first pool needs it and goes with the last cluster of its account and region. A provider
of that name that a person has made is used as it is, and stays.
"""

from __future__ import annotations

from contextlib import suppress

from stockyard.domain.manifests import ProviderDocument
from stockyard.domain.node_groups import pools_of_groups
from stockyard.domain.pool_records import GROUP, Pool
from stockyard.domain.records import Cluster, NodeProvider
from stockyard.errors import InUse, NotFound, PreconditionFailed
from stockyard.operations.listing import every
from stockyard.operations.node_providers.providers import create_provider, delete_provider
from stockyard.operations.node_providers.visible import find_provider
from stockyard.operations.pools.pools import draft
from stockyard.operations.services import Services
from stockyard.ports.clusters import ServesNodeGroups


def group_provider(services: Services, cluster: Cluster) -> ProviderDocument | None:
    """The provider of the cluster's node groups as its driver describes it; None when the driver knows none."""
    driver: object = services.cluster_drivers.get(cluster.driver)
    return driver.group_provider(cluster) if isinstance(driver, ServesNodeGroups) else None


def group_pools(services: Services, cluster: Cluster, actor: str) -> list[Pool]:
    """The pools of a new cluster's worker groups, not stored yet."""
    groups = cluster.settings.get("autoscaler_node_groups") or ()
    document = group_provider(services, cluster) if groups else None
    provider = document.name if document is not None else ""
    return [draft(services, cluster.id, new_pool, actor) for new_pool in pools_of_groups(groups, provider)]


def ensure_provider(services: Services, cluster: Cluster, pool: Pool) -> None:
    """Make the provider of a group's pool when it is missing. Raises what making a provider raises."""
    if pool.form != GROUP or _existing(services, pool.provider_ref) is not None:
        return
    document = group_provider(services, cluster)
    if document is not None and document.name == pool.provider_ref:
        with suppress(InUse):  # Another pass was faster.
            create_provider(services, document, pool.created_by, implicit=True)


def remove_provider(services: Services, cluster: Cluster) -> None:
    """Remove the provider of the cluster's groups, if nobody made or uses it and no other cluster's groups need it."""
    document = group_provider(services, cluster)
    provider = _existing(services, document.name) if document is not None else None
    if provider is None or not provider.implicit:
        return
    if any(pool.provider_ref == provider.name for pool in every(services.store, Pool)):
        return
    with suppress(InUse, NotFound, PreconditionFailed):
        delete_provider(services, provider.id, "stockyard")


def _existing(services: Services, name: str) -> NodeProvider | None:
    try:
        return find_provider(services, name)
    except NotFound:
        return None
