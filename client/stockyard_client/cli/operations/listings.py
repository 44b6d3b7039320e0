"""Listings of the list commands, as ``watching`` needs them: how a list is read, and which events are about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from stockyard_client.cli.operations.events import Names
from stockyard_client.cli.output.node_tables import CLAIMS, PRICES, PROVIDERS, TYPES
from stockyard_client.cli.output.output import ACCOUNTS, CLUSTERS, OPERATIONS
from stockyard_client.cli.output.pool_tables import POOLS
from stockyard_client.cli.output.tables import Printer
from stockyard_client.cli.output.watching import Listing, by_prefix
from stockyard_client.client import Client
from stockyard_client.models import CloudAccount, Cluster, Operation
from stockyard_client.node_models import NodeClaim, NodeProvider, NodeType, PriceOf
from stockyard_client.os_image_models import OSImage
from stockyard_client.pool_models import Pool
from stockyard_client.profile_models import ClusterProfile
from stockyard_client.resources.tenant import NodeEnvironment, Quota
from stockyard_client.site_models import Site

Filters = Mapping[str, Any]
ACCOUNT = "cloud-account/"
OFTEN, SELDOM = 15.0, 60.0
"""Seconds after which lists are read again whose changes have no event: short ones, and those of a thousand rows."""


def clusters(
    client: Client,
    filters: Filters,
    is_wanted: Callable[[Cluster], bool] | None = None,
    printer: Printer[Cluster] = CLUSTERS,
) -> Listing[Cluster]:
    """Clusters, by their ids; only those that are wanted."""
    return Listing(
        printer,
        lambda: filter(is_wanted or (lambda _: True), client.clusters.list(page_size=200, **filters)),
        client.clusters.get,
        by_prefix("clu_"),
        filtered=any(filters.values()) or is_wanted is not None,
    )


def claims(client: Client, filters: Filters, *, named: bool) -> Listing[NodeClaim]:
    """Claims, by their ids; ``named``: with the names of their clusters in place of the ids."""
    names = Names(client)

    def with_name(claim: NodeClaim) -> NodeClaim:
        return claim.model_copy(update={"cluster": names.of(claim.cluster)}) if named else claim

    return Listing(
        CLAIMS,
        lambda: map(with_name, client.node_claims.list(page_size=200, **filters)),
        lambda claim: with_name(client.node_claims.get(claim)),
        by_prefix("ncl_"),
        filtered=any(filters.values()),
    )


def providers(client: Client, filters: Filters) -> Listing[NodeProvider]:
    """Node providers, by their ids. What happens to a shared one is told to the platform alone."""
    return Listing(
        PROVIDERS,
        lambda: client.node_providers.list(page_size=200, **filters),
        client.node_providers.get,
        by_prefix("npr_", "spr_"),
        filtered=any(filters.values()),
    )


def accounts(client: Client) -> Listing[CloudAccount]:
    """Cloud accounts, by their numbers."""

    def keys(event: Mapping[str, Any], _: Mapping[str, CloudAccount]) -> Iterable[str]:
        subject = str(event.get("subject", ""))
        return [subject.removeprefix(ACCOUNT)] if subject.startswith(ACCOUNT) else []

    return Listing(ACCOUNTS, lambda: client.accounts.list(page_size=200), client.accounts.get, keys)


def pools(client: Client, cluster: str) -> Listing[Pool]:
    """Pools of the cluster of that id, by their names. Their nodes are claims, whose events name the pool."""

    def keys(event: Mapping[str, Any], _: Mapping[str, Pool]) -> Iterable[str]:
        owner, slash, name = str(event.get("subject", "")).partition("/")
        if owner == cluster and slash:
            return [name]
        return [str(event["pool"])] if event.get("cluster_id") == cluster and event.get("pool") else []

    return Listing(
        POOLS,
        lambda: client.pools.list(cluster, page_size=200),
        lambda name: client.pools.get(cluster, name),
        keys,
        key=lambda pool: pool.name,
    )


def operations(client: Client, filters: Filters, newest: int | None) -> Listing[Operation]:
    """Operations, by their ids. Events of a cluster or claim are about its operation that is running, too."""

    def keys(event: Mapping[str, Any], current: Mapping[str, Operation]) -> Iterable[str]:
        subject = str(event.get("subject", ""))
        if subject.startswith("op_"):
            return [subject]
        return [each.id for each in current.values() if each.subject == subject and not each.done]

    filtered = any(filters.get(name) for name in ("status", "subject", "kind"))
    size = min(newest or 200, 200)
    return Listing(
        OPERATIONS,
        lambda: islice(client.operations.list(page_size=size, **filters), newest),
        client.operations.get,
        keys,
        filtered=filtered,
    )


def types(
    client: Client, provider: str | None, select: Callable[[Iterable[NodeType]], Iterable[NodeType]] = iter
) -> Listing[NodeType]:
    """Node types that are wanted, by their ids. Their prices and room change without an event."""
    return Listing(
        TYPES,
        lambda: select(client.node_types.list(provider=provider, page_size=200)),
        None,
        by_prefix("npr_", "spr_"),
        again=SELDOM,
    )


def prices(client: Client, filters: Filters) -> Listing[PriceOf]:
    """Prices, by their kind and name, which no event tells of."""

    return Listing(
        PRICES,
        lambda: client.prices.list(**filters, page_size=200),
        None,
        by_prefix(),
        key=lambda price: f"{price.kind}/{price.name}",
        again=SELDOM,
    )


def quotas(client: Client, printer: Printer[Quota]) -> Listing[Quota]:
    """Quotas, by their names. What is used changes when something begins or ends, which has an event."""
    return Listing(
        printer,
        lambda: client.quotas.list(page_size=200),
        None,
        by_prefix("clu_", "ncl_", "npr_"),
        key=lambda quota: quota.name,
        again=OFTEN,
    )


def environments(client: Client, printer: Printer[NodeEnvironment], filters: Filters) -> Listing[NodeEnvironment]:
    """Environments, by their ids. They come and go with nodes."""
    return Listing(
        printer,
        lambda: client.node_environments.list(page_size=200, **filters),
        None,
        by_prefix("clu_", "ncl_", "npr_", "spr_"),
        again=OFTEN,
    )


def sites(client: Client, printer: Printer[Site]) -> Listing[Site]:
    """Sites."""
    return Listing(printer, lambda: client.sites.list(page_size=200), None, by_prefix(), again=OFTEN)


def os_images(client: Client, printer: Printer[OSImage]) -> Listing[OSImage]:
    """Images, by their ids, which no event tells of."""
    return Listing(printer, lambda: client.os_images.list(page_size=200), None, by_prefix(), again=OFTEN)


def profiles(client: Client, printer: Printer[ClusterProfile]) -> Listing[ClusterProfile]:
    """Profiles, by their ids, which no event tells of."""
    return Listing(printer, lambda: client.profiles.list(page_size=200), None, by_prefix(), again=OFTEN)
