"""Proposals of the shell for an argument or an option: names that the API has, one page of them, asked for once.

Silent about every failure, because a prompt is no place for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

import typer

from stockyard_client.base_models import Model
from stockyard_client.cli.context import Context
from stockyard_client.client import Client
from stockyard_client.errors import StockyardClientError

_SECONDS = 2.0
_MOST = 100

M = TypeVar("M", bound=Model)

Proposals = list[tuple[str, str]]
"""Each with what it is; shells that show that are zsh and fish."""
Source = Callable[[Client, typer.Context], Iterable[tuple[str, str]]]


def cluster_names(ctx: typer.Context, incomplete: str) -> Proposals:
    """Names of clusters."""
    return _proposed(ctx, incomplete, _clusters)


def claim_names(ctx: typer.Context, incomplete: str) -> Proposals:
    """Names of node claims, of the cluster that was given before, else of all."""
    return _proposed(ctx, incomplete, _claims)


def pool_names(ctx: typer.Context, incomplete: str) -> Proposals:
    """Names of the pools of the cluster that was given before."""

    def pools(client: Client, _: typer.Context) -> Iterable[tuple[str, str]]:
        cluster = _cluster_of(ctx)
        listed = _page(client.pools.list(cluster, page_size=_MOST)) if cluster else ()
        return ((pool.name, pool.kind) for pool in listed)

    return _proposed(ctx, incomplete, pools)


def provider_names(ctx: typer.Context, incomplete: str) -> Proposals:
    """Names of node providers."""

    def providers(client: Client, _: typer.Context) -> Iterable[tuple[str, str]]:
        return ((provider.name, provider.kind) for provider in _page(client.node_providers.list(page_size=_MOST)))

    return _proposed(ctx, incomplete, providers)


def type_names(ctx: typer.Context, incomplete: str) -> Proposals:
    """Names of node types, as ``provider.type``; of one provider once that is written."""

    def types(client: Client, _: typer.Context) -> Iterable[tuple[str, str]]:
        provider = incomplete.partition(".")[0] if "." in incomplete else None
        listed = _page(client.node_types.list(provider=provider, page_size=_MOST))
        return ((each.name, each.phase) for each in listed)

    return _proposed(ctx, incomplete, types)


def account_numbers(ctx: typer.Context, incomplete: str) -> Proposals:
    """Numbers of cloud accounts."""

    def accounts(client: Client, _: typer.Context) -> Iterable[tuple[str, str]]:
        return ((str(account.id), account.name) for account in _page(client.accounts.list(page_size=_MOST)))

    return _proposed(ctx, incomplete, accounts)


def operation_ids(ctx: typer.Context, incomplete: str) -> Proposals:
    """Ids of operations, of those that began last."""
    return _proposed(ctx, incomplete, _operations)


def operation_subjects(ctx: typer.Context, incomplete: str) -> Proposals:
    """Propose subjects of operations: clusters and claims by their names; operations themselves once an id is begun."""

    def subjects(client: Client, ctx: typer.Context) -> Iterable[tuple[str, str]]:
        if incomplete.startswith("op_"):
            return _operations(client, ctx)
        return [*_clusters(client, ctx), *_claims(client, ctx)]

    return _proposed(ctx, incomplete, subjects)


def profile_names(ctx: typer.Context, incomplete: str) -> Proposals:
    """Names of cluster profiles."""

    def profiles(client: Client, _: typer.Context) -> Iterable[tuple[str, str]]:
        return ((profile.name, profile.description) for profile in _page(client.profiles.list(page_size=_MOST)))

    return _proposed(ctx, incomplete, profiles)


def site_names(ctx: typer.Context, incomplete: str) -> Proposals:
    """Names of sites."""

    def sites(client: Client, _: typer.Context) -> Iterable[tuple[str, str]]:
        return ((site.name, site.description) for site in _page(client.sites.list(page_size=_MOST)))

    return _proposed(ctx, incomplete, sites)


def os_image_names(ctx: typer.Context, incomplete: str) -> Proposals:
    """Names of images of operating systems."""

    def images(client: Client, _: typer.Context) -> Iterable[tuple[str, str]]:
        return ((image.name, image.description) for image in _page(client.os_images.list(page_size=_MOST)))

    return _proposed(ctx, incomplete, images)


def snapshot_ids(ctx: typer.Context, incomplete: str) -> Proposals:
    """Ids of the snapshots of the cluster that was given before."""

    def snapshots(client: Client, _: typer.Context) -> Iterable[tuple[str, str]]:
        cluster = _cluster_of(ctx)
        items = client.clusters.snapshots(cluster)["items"] if cluster else ()
        return [("latest", "the newest"), *((str(item["id"]), str(item["stored_at"])) for item in items)]

    return _proposed(ctx, incomplete, snapshots)


def environment_ids(ctx: typer.Context, incomplete: str) -> Proposals:
    """Ids of what providers set up for clusters."""

    def environments(client: Client, _: typer.Context) -> Iterable[tuple[str, str]]:
        listed = _page(client.node_environments.list(page_size=_MOST))
        return ((each.id, f"{each.provider} {each.phase}") for each in listed)

    return _proposed(ctx, incomplete, environments)


def quota_names(ctx: typer.Context, incomplete: str) -> Proposals:
    """Names of limits."""

    def quotas(client: Client, _: typer.Context) -> Iterable[tuple[str, str]]:
        return ((quota.name, f"{quota.used} of {quota.limit}") for quota in _page(client.quotas.list(page_size=_MOST)))

    return _proposed(ctx, incomplete, quotas)


def _page(listed: Iterable[M]) -> Iterator[M]:
    """No more than what the first page has."""
    return islice(listed, _MOST)


def _clusters(client: Client, _: typer.Context) -> Iterator[tuple[str, str]]:
    return ((cluster.name, cluster.status) for cluster in _page(client.clusters.list(page_size=_MOST)))


def _claims(client: Client, ctx: typer.Context) -> Iterator[tuple[str, str]]:
    listed = _page(client.node_claims.list(cluster=_cluster_of(ctx), page_size=_MOST))
    return ((claim.name, claim.phase) for claim in listed)


def _operations(client: Client, _: typer.Context) -> Iterator[tuple[str, str]]:
    listed = _page(client.operations.list(order="desc", page_size=_MOST))
    return ((operation.id, f"{operation.kind} {operation.status}") for operation in listed)


def _cluster_of(ctx: typer.Context) -> str | None:
    """The cluster that the line names so far, as an argument or an option."""
    cluster = ctx.params.get("cluster")
    if cluster is None and ctx.args:
        # before an option without its value, arguments are told apart only by their order
        first = next((each for each in ctx.command.params if each.param_type_name == "argument"), None)
        cluster = ctx.args[0] if first is not None and first.name == "cluster" else None
    return cluster if isinstance(cluster, str) else None


def _proposed(ctx: typer.Context, incomplete: str, source: Source) -> Proposals:
    """Entries of the first page that begin with the text at the prompt."""
    import stamina

    # a shell that waits is worse than one that proposes nothing
    stamina.set_active(False)
    root: dict[str, Any] = ctx.find_root().params
    context = ctx.find_object(Context) or Context()
    context.url, context.tenant = root.get("url") or context.url, root.get("tenant") or context.tenant
    context.call_timeout = _SECONDS
    try:
        with context.client() as client:
            proposals = list(source(client, ctx))
    except (StockyardClientError, OSError, ValueError, KeyError):
        return []
    return [(name, about) for name, about in proposals if name.startswith(incomplete)]
