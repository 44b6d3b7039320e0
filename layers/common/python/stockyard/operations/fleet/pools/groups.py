"""Node groups of a cluster's settings: the pools that they become, and the providers that serve them.

A provider is made when the first pool needs it and goes with the last cluster whose groups it serves. A provider of
that name that a person has made is used as it is, and stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from stockyard.domain import cloud_kinds
from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.pools.node_groups import GROUP_SETTINGS, worker_groups
from stockyard.domain.pools.records import GROUP, NewPool, Pool
from stockyard.domain.records import Cluster, NodeProvider
from stockyard.domain.values.pointers import pointer
from stockyard.errors import InUse, NotFound, PreconditionFailed
from stockyard.operations.cloud_accounts.of_provider import account_of
from stockyard.operations.fleet.pools.pools import draft, member_pool_of
from stockyard.operations.listing import every
from stockyard.operations.node_providers.catalog import source_of
from stockyard.operations.node_providers.providers import create_provider, delete_provider
from stockyard.operations.node_providers.providers import draft as provider_draft
from stockyard.operations.node_providers.visible import find_provider
from stockyard.operations.services import Services
from stockyard.ports import Finding
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import Availability, possible_offerings, unserved_types
from stockyard.scheduling.reading import Reader


def group_providers(services: Services, cluster: Cluster) -> Iterator[tuple[Group, ProviderDocument | None]]:
    """The cluster's worker groups, each with its provider as the driver describes it; None when the driver knows
    none."""
    driver = services.cluster_drivers.get(cluster.driver)
    for group in worker_groups(cluster.settings):
        yield group, driver.group_provider(cluster, group) if driver is not None else None


def group_pools(services: Services, cluster: Cluster, actor: str) -> list[Pool]:
    """The pools of a new cluster's worker groups, not stored yet."""
    mapping = cloud_kinds.group_mapping(cluster.provider, cluster.cluster_type, cluster.driver)
    if mapping is None:
        return []
    return [
        draft(services, cluster.id, mapping.pool_of_group(group, document.name if document is not None else ""), actor)
        for group, document in group_providers(services, cluster)
    ]


def group_findings(services: Services, cluster: Cluster) -> list[Finding]:
    """Findings about types that the cluster's groups name and of which no node can be made yet: a fault where nothing
    else of the group is left, else a warning."""
    mapping = cloud_kinds.group_mapping(cluster.provider, cluster.cluster_type, cluster.driver)
    driver = services.cluster_drivers.get(cluster.driver)
    if mapping is None or driver is None:
        return []
    workers = worker_groups(cluster.settings)
    findings: list[Finding] = []
    for setting in sorted(GROUP_SETTINGS):
        for index, group in enumerate(cluster.settings.get(setting) or ()):
            document = driver.group_provider(cluster, group) if group in workers else None
            if document is not None:
                unserved, is_all = _unserved(services, document, mapping.pool_of_group(group, document.name))
                findings += [
                    Finding(
                        pointer("settings", setting, index, *_path_of(group, node_type.bare)),
                        f"No node of {node_type.bare} can be made yet: {node_type.unserved}.",
                        warning=not is_all,
                    )
                    for node_type in unserved
                ]
    return findings


def _unserved(services: Services, document: ProviderDocument, new_pool: NewPool) -> tuple[Sequence[NodeType], bool]:
    """The node types of a group of which no node can be made yet, and whether it has no other."""
    # What the document comes to is kept by its name: two documents of one name are equal.
    provider = _existing(services, document.name) or provider_draft(
        services, document, id=f"{services.tenant}/{document.name}"
    )
    source = source_of(services, provider)
    types = source.node_types(provider, account_of(services, provider)) if source is not None else ()
    if not any(node_type.unserved for node_type in types):
        return (), False
    index, request = Index(types), Reader().request(new_pool.requirements, {}, provider.name)
    free = Availability({node_type.name: 1 for node_type in types if node_type.limited})
    return unserved_types(index, request), not possible_offerings(index, request, free)


def _path_of(group: Group, name: str) -> Sequence[str | int]:
    """Place where a group names a type; empty where it does not."""
    for field, value in group.items():
        if value == name:
            return (field,)
        if isinstance(value, list) and name in value:
            return field, value.index(name)
    return ()


def ensure_provider(services: Services, cluster: Cluster, pool: Pool) -> None:
    """Make the provider of a group's pool when it is missing. Raises what making a provider raises."""
    if pool.form != GROUP or _existing(services, pool.provider_ref) is not None:
        return
    document = _documents(services, cluster).get(pool.provider_ref)
    if document is not None:
        with suppress(InUse):  # Another pass was faster.
            create_provider(services, document, pool.created_by, implicit=True)


def ensure_member_provider(services: Services, cluster: Cluster, name: str) -> None:
    """Make the provider of the control plane's members when it is missing."""
    document = _member_document(services, cluster)
    if document is not None and document.name == name and _existing(services, name) is None:
        with suppress(InUse):  # Another pass was faster.
            create_provider(services, document, cluster.created_by, implicit=True)


def _member_document(services: Services, cluster: Cluster) -> ProviderDocument | None:
    """Provider of the members of a control plane that are claims; None where there are none."""
    driver = services.cluster_drivers.get(cluster.driver)
    return driver.group_provider(cluster, {}) if driver is not None and driver.balancer is not None else None


def remove_providers(services: Services) -> None:
    """Remove the providers of groups that nobody made or uses, and that no pool needs: also of groups that have left
    the settings of their cluster while it stood."""
    implicit = [provider for provider in every(services.store, NodeProvider) if provider.implicit]
    needed = {pool.provider_ref for pool in every(services.store, Pool)} if implicit else set()
    for provider in implicit:
        if provider.name not in needed:
            with suppress(InUse, NotFound, PreconditionFailed):
                delete_provider(services, provider.id, "stockyard")


def _documents(services: Services, cluster: Cluster) -> dict[str, ProviderDocument]:
    documents = [document for _, document in group_providers(services, cluster)]
    if member_pool_of(services, cluster.id) is not None:
        documents.append(_member_document(services, cluster))
    return {document.name: document for document in documents if document is not None}


def _existing(services: Services, name: str) -> NodeProvider | None:
    try:
        return find_provider(services, name)
    except NotFound:
        return None
