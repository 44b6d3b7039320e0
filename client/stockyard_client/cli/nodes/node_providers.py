"""``stockyard provider``, ``stockyard type`` and ``stockyard price``: where nodes can come from, and what they cost."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.input.completion import provider_names, type_names
from stockyard_client.cli.input.confirmations import Yes, confirm
from stockyard_client.cli.input.inputs import read_either, requirement
from stockyard_client.cli.input.options import DryRun, Manifest, Watch
from stockyard_client.cli.nodes import provider_validation, type_filters
from stockyard_client.cli.operations import listings, updates
from stockyard_client.cli.output import consequences, plans, watching
from stockyard_client.cli.output.node_tables import PRICES, PROVIDERS, TYPES, types_printer
from stockyard_client.cli.output.output import Form, Output, show_many, show_one, write_yaml_or_json
from stockyard_client.cli.tenant import tenancy

app = typer.Typer(no_args_is_help=True, help="Node providers.", rich_markup_mode=None)
types = typer.Typer(no_args_is_help=True, help="Node types.", rich_markup_mode=None)
prices = typer.Typer(no_args_is_help=True, help="Prices.", rich_markup_mode=None)
app.command("update")(updates.update_provider)
app.command("edit")(updates.edit_provider)
app.command("validate")(provider_validation.validate)
types.command("allowed")(tenancy.allowed)
types.command("allow")(tenancy.allow)
Name = Annotated[str, typer.Argument(metavar="PROVIDER", help="Name or id.", autocompletion=provider_names)]


@app.command()
def create(
    run: typer.Context,
    file: Annotated[
        str, typer.Option("--file", "-f", help="JSON or YAML document or manifest; - reads standard input.")
    ],
    name: Annotated[str | None, typer.Option(help="Wins over the document's name.")] = None,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Add a node provider. From a document of the API, or a NodeProvider manifest."""
    context = contexts.of(run)
    body, manifest = read_either(context, file, "provider", ["NodeProvider"])
    with context.client() as client:
        if manifest:
            if name:
                body["metadata"] = {**(body.get("metadata") or {}), "name": name}
            if dry_run:
                plans.show(context, output, client.manifests.plan([body], create_only=True))
                return
            # The provider itself warns of all that the manifest is warned of.
            provider = client.node_providers.get(client.manifests.apply([body], create_only=True)[0].id)
        else:
            body.update({"name": name} if name else {})
            if dry_run:
                plans.show(context, output, client.node_providers.plan_create(body))
                return
            provider = client.node_providers.create(body)
    show_one(context, output, PROVIDERS, provider)
    plans.warn(context, provider.warnings)
    if provider.message:
        context.say(provider.message)


@app.command("list")
def list_(
    run: typer.Context,
    kind: Annotated[str | None, typer.Option(help="Only providers of this kind.")] = None,
    phase: Annotated[str | None, typer.Option(help="Pending, Available or Failed.")] = None,
    watch: Watch = False,
    output: Output = Form.TABLE,
) -> None:
    """List the node providers."""
    context = contexts.of(run)
    query: dict[str, Any] = {"kind": kind, "phase": phase}
    with context.client() as client:
        if watch:
            watching.watch_list(context, client, output, listings.providers(client, query))
        show_many(context, output, PROVIDERS, client.node_providers.list(**query))


@app.command()
def get(
    run: typer.Context, provider: Name, manifest: Manifest = False, watch: Watch = False, output: Output = Form.TABLE
) -> None:
    """Show one node provider."""
    context = contexts.of(run)
    with context.client() as client:
        if manifest:
            write_yaml_or_json(output, client.node_providers.manifest(provider))
            return
        if watch:
            records = client.node_providers.watch(provider, on_trouble=watching.trouble(context))
            watching.watch_one(context, output, PROVIDERS, records)
            return
        show_one(context, output, PROVIDERS, client.node_providers.get(provider))


@app.command()
def describe(run: typer.Context, provider: Name, output: Output = Form.TABLE) -> None:
    """Describe a node provider and its state. Its types, their prices and the claims that it serves are shown."""
    from stockyard_client.cli.output import descriptions

    context = contexts.of(run)
    with context.client() as client:
        record = client.node_providers.get(provider)
        if output is Form.TABLE:
            descriptions.provider(context, client, record)
        else:
            show_one(context, output, PROVIDERS, record)


@app.command()
def delete(
    run: typer.Context,
    provider: Name,
    yes: Yes = False,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Remove a node provider that no claim and no cluster uses."""
    context = contexts.of(run)
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.node_providers.plan_delete(provider))
            return
        lines = consequences.safely(consequences.of_provider(client, provider), f"Node provider {provider} is removed.")
        confirm(context, lines, yes=yes)
        client.node_providers.delete(provider)
    context.say(f"Node provider {provider} was removed.")


@types.command("list")
def list_types(
    run: typer.Context,
    provider: Annotated[
        str | None, typer.Option(help="Only types of this provider.", autocompletion=provider_names)
    ] = None,
    cpu: type_filters.Cpu = None,
    memory: type_filters.Memory = None,
    gpu: type_filters.Gpu = None,
    arch: type_filters.Arch = None,
    zone: type_filters.Zone = None,
    max_price: type_filters.MaxPrice = None,
    capacity_type: type_filters.CapacityType = None,
    has: type_filters.Property = None,
    watch: Watch = False,
    output: Output = Form.TABLE,
) -> None:
    """List the node types with cost, price and capacity. -o wide shows their properties. In a table what several
    providers have alike is one row."""
    context = contexts.of(run)
    type_filter = type_filters.TypeFilter(
        cpu, memory, gpu, arch, zone, max_price, capacity_type, [requirement(text) for text in has or []]
    )
    with context.client() as client:
        if watch:
            watching.watch_list(context, client, output, listings.types(client, provider, type_filter.of))
        types = type_filter.of(client.node_types.list(provider=provider, page_size=200))
    if output in {Form.TABLE, Form.WIDE}:
        rows = type_filters.without_repetitions(types)
        also = {node_type.id: ", ".join(providers) for node_type, providers in rows}
        show_many(context, output, types_printer(also), [node_type for node_type, _ in rows])
    else:
        show_many(context, output, TYPES, types)


@types.command("get")
def get_type(
    run: typer.Context,
    node_type: Annotated[
        str, typer.Argument(metavar="TYPE", help="provider.type, type, or id.", autocompletion=type_names)
    ],
    watch: Watch = False,
    output: Output = Form.TABLE,
) -> None:
    """Show one node type."""
    context = contexts.of(run)
    with context.client() as client:
        if watch:
            records = client.node_types.watch(node_type, on_trouble=watching.trouble(context))
            watching.watch_one(context, output, TYPES, records)
            return
        show_one(context, output, TYPES, client.node_types.get(node_type))


@types.command("describe")
def describe_type(
    run: typer.Context,
    node_type: Annotated[
        str, typer.Argument(metavar="TYPE", help="provider.type, type, or id.", autocompletion=type_names)
    ],
    output: Output = Form.TABLE,
) -> None:
    """Describe a node type and its prices. What it has, and what of that a claim can have, is shown."""
    from stockyard_client.cli.output import descriptions

    context = contexts.of(run)
    with context.client() as client:
        record = client.node_types.get(node_type)
    if output is Form.TABLE:
        descriptions.node_type(context, record)
    else:
        show_one(context, output, TYPES, record)


@prices.command("list")
def list_prices(
    run: typer.Context,
    region: Annotated[str | None, typer.Option(help="An AWS region; default us-east-1.")] = None,
    name: Annotated[
        str | None, typer.Option("--name", "--type", help="An instance type or a rate; * stands for any text: 't3.*'.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="instance: machines by type; rate: everything else.")] = None,
    watch: Watch = False,
    output: Output = Form.TABLE,
) -> None:
    """List what EC2 costs in a region."""
    context = contexts.of(run)
    query: dict[str, Any] = {"region": region, "name": name, "kind": kind}
    with context.client() as client:
        if watch:
            watching.watch_list(context, client, output, listings.prices(client, query))
        show_many(context, output, PRICES, client.prices.list(**query, page_size=200))
