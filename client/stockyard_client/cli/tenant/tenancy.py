"""Commands for what a tenant may use: ``quota``, ``event-account``, ``environment``, ``type allow``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.input.completion import environment_ids, quota_names, type_names
from stockyard_client.cli.input.options import DryRun, Watch
from stockyard_client.cli.operations import listings
from stockyard_client.cli.output import plans, watching
from stockyard_client.cli.output.output import Form, Output, show_many, show_one
from stockyard_client.cli.output.tables import Column, Printer
from stockyard_client.resources.tenant import AllowedNodeTypes, EventAccounts, NodeEnvironment, Quota

quotas = typer.Typer(no_args_is_help=True, help="Limits of a tenant.", rich_markup_mode=None)
environments = typer.Typer(no_args_is_help=True, help="What providers set up for clusters.", rich_markup_mode=None)
accounts = typer.Typer(no_args_is_help=True, help="AWS accounts whose events are your requests.", rich_markup_mode=None)

QUOTAS: Printer[Quota] = Printer(
    (
        Column("NAME", lambda q: q.name),
        Column("USED", lambda q: q.used),
        Column("LIMIT", lambda q: q.limit),
        Column("SET", lambda q: "default" if q.version == 0 else "own"),
    ),
    lambda q: q.name,
)
ENVIRONMENTS: Printer[NodeEnvironment] = Printer(
    (
        Column("ID", lambda e: e.id),
        Column("PROVIDER", lambda e: e.provider),
        Column("CLUSTER", lambda e: e.cluster_id),
        Column("PHASE", lambda e: e.phase),
        Column("REASON", lambda e: e.reason),
        Column("MESSAGE", lambda e: e.message, wide=True),
        Column("CREATED", lambda e: e.created_at, wide=True),
    ),
    lambda e: e.id,
)
ALLOWED: Printer[AllowedNodeTypes] = Printer(
    (
        Column("ALLOWED", lambda a: "all" if a.allowed is None else ", ".join(a.allowed) or "none"),
        Column("AGE", lambda a: a.updated_at, is_age=True),
    ),
    lambda a: "\n".join(a.allowed or ()),
)
EVENT_ACCOUNTS: Printer[EventAccounts] = Printer(
    (
        Column("ACCOUNTS", lambda a: ", ".join(a.accounts) or "none"),
        Column("RIGHTS", lambda a: a.rights),
        Column("AGE", lambda a: a.updated_at, is_age=True),
    ),
    lambda a: "\n".join(a.accounts),
)


@quotas.command("list")
def list_quotas(run: typer.Context, watch: Watch = False, output: Output = Form.TABLE) -> None:
    """List the limits, and how much of each is used."""
    context = contexts.of(run)
    with context.client() as client:
        if watch:
            watching.watch_list(context, client, output, listings.quotas(client, QUOTAS))
        show_many(context, output, QUOTAS, client.quotas.list())


@quotas.command("get")
def get_quota(
    run: typer.Context,
    quota: Annotated[
        str, typer.Argument(metavar="QUOTA", help="Its name, such as clusters.", autocompletion=quota_names)
    ],
    watch: Watch = False,
    output: Output = Form.TABLE,
) -> None:
    """Show one limit."""
    context = contexts.of(run)
    with context.client() as client:
        if watch:
            records = client.quotas.watch(quota, on_trouble=watching.trouble(context))
            watching.watch_one(context, output, QUOTAS, records)
            return
        show_one(context, output, QUOTAS, client.quotas.get(quota))


@quotas.command("set")
def set_quota(
    run: typer.Context,
    quota: Annotated[
        str, typer.Argument(metavar="QUOTA", help="Its name, such as clusters.", autocompletion=quota_names)
    ],
    limit: Annotated[int | None, typer.Argument(metavar="LIMIT", min=0, help="The new limit.")] = None,
    default: Annotated[bool, typer.Option("--default", help="Go back to the default.")] = False,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Set a tenant's limit, as the platform: --tenant names the tenant."""
    if default == (limit is not None):
        raise BadInput("give the limit, or --default")
    context = contexts.of(run)
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.quotas.plan_set(quota, limit))
            return
        show_one(context, output, QUOTAS, client.quotas.set(quota, limit))


@environments.command("list")
def list_environments(
    run: typer.Context,
    cluster: Annotated[str | None, typer.Option(metavar="CLUSTER", help="Only those of this cluster.")] = None,
    provider: Annotated[str | None, typer.Option(metavar="PROVIDER", help="Only those of this provider.")] = None,
    watch: Watch = False,
    output: Output = Form.TABLE,
) -> None:
    """List what providers have set up for clusters."""
    context = contexts.of(run)
    with context.client() as client:
        # the API filters by ids
        cluster_id = client.clusters.get(cluster).id if cluster else None
        provider_id = client.node_providers.get(provider).id if provider else None
        query: dict[str, Any] = {"cluster": cluster_id, "provider": provider_id}
        if watch:
            watching.watch_list(context, client, output, listings.environments(client, ENVIRONMENTS, query))
        show_many(context, output, ENVIRONMENTS, client.node_environments.list(**query))


@environments.command("get")
def get_environment(
    run: typer.Context,
    environment: Annotated[str, typer.Argument(metavar="ENVIRONMENT", help="Its id.", autocompletion=environment_ids)],
    watch: Watch = False,
    output: Output = Form.TABLE,
) -> None:
    """Show what a provider has set up for a cluster."""
    context = contexts.of(run)
    with context.client() as client:
        if watch:
            records = client.node_environments.watch(environment, on_trouble=watching.trouble(context))
            watching.watch_one(context, output, ENVIRONMENTS, records)
            return
        show_one(context, output, ENVIRONMENTS, client.node_environments.get(environment))


@accounts.command("get")
def get_accounts(run: typer.Context, watch: Watch = False, output: Output = Form.TABLE) -> None:
    """Show the AWS accounts whose events are your requests."""
    context = contexts.of(run)
    with context.client() as client:
        if watch:
            records = client.event_accounts.watch(on_trouble=watching.trouble(context))
            watching.watch_one(context, output, EVENT_ACCOUNTS, records)
            return
        show_one(context, output, EVENT_ACCOUNTS, client.event_accounts.get())


@accounts.command("set")
def set_accounts(
    run: typer.Context,
    numbers: Annotated[
        list[str] | None, typer.Argument(metavar="ACCOUNT", help="Of 12 digits; without any, no events are taken.")
    ] = None,
    admin: Annotated[bool, typer.Option("--admin", help="With the rights of an administrator.")] = False,
    output: Output = Form.TABLE,
) -> None:
    """Set the AWS accounts whose events are requests. For the platform; --tenant says whose requests."""
    context = contexts.of(run)
    with context.client() as client:
        show_one(context, output, EVENT_ACCOUNTS, client.event_accounts.set(numbers or [], admin=admin))


def allowed(run: typer.Context, watch: Watch = False, output: Output = Form.TABLE) -> None:
    """Show which node types the tenant may use."""
    context = contexts.of(run)
    with context.client() as client:
        if watch:
            records = client.allowed_types.watch(on_trouble=watching.trouble(context))
            watching.watch_one(context, output, ALLOWED, records)
            return
        show_one(context, output, ALLOWED, client.allowed_types.get())


def allow(
    run: typer.Context,
    types: Annotated[
        list[str] | None,
        typer.Argument(metavar="TYPE", help="provider.type, or provider.* for all of one.", autocompletion=type_names),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Allow all types.")] = False,
    none: Annotated[bool, typer.Option("--none", help="Allow no type.")] = False,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Set which node types the tenant may use. Those that are not named are no longer allowed."""
    if bool(types) + every + none != 1:
        raise BadInput("give the types, or --all, or --none")
    context = contexts.of(run)
    with context.client() as client:
        chosen_types = None if every else types or []
        if dry_run:
            plans.show(context, output, client.allowed_types.plan_set(chosen_types))
            return
        show_one(context, output, ALLOWED, client.allowed_types.set(chosen_types))
