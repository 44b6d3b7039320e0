"""``stockyard pool``: where the nodes of a cluster come from, and how many there shall be."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stockyard_client.base_models import GROUP
from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.assignments import Set, patch_of, source_of
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.documents.selection import of_cluster
from stockyard_client.cli.input.completion import cluster_names, pool_names, provider_names
from stockyard_client.cli.input.confirmations import Yes, confirm
from stockyard_client.cli.input.inputs import pairs, read_either, read_patch
from stockyard_client.cli.input.options import DryRun, File, Manifest, Queue, Timeout, Wait, Watch
from stockyard_client.cli.operations import changes, listings, operations, updates
from stockyard_client.cli.output import consequences, plans, progress, watching
from stockyard_client.cli.output.output import Form, Output, show_many, show_one, write_yaml_or_json
from stockyard_client.cli.output.pool_tables import POOLS, of_all_clusters, with_cluster
from stockyard_client.cli.pools import edits as pool_edits
from stockyard_client.cli.pools.options import (
    MaxPrice,
    RootDisk,
    Strategy,
    Zone,
    fields_of,
    group_fields_of,
    merged,
    options_of,
    source_of_options,
    taint_of,
)
from stockyard_client.client import Client
from stockyard_client.pool_models import Pool

app = typer.Typer(no_args_is_help=True, help="Pools of a cluster.", rich_markup_mode=None)
Name = Annotated[str, typer.Argument(metavar="POOL", help="Its name.", autocompletion=pool_names)]
Cluster = Annotated[str, typer.Option(help="The cluster, by name or id.", autocompletion=cluster_names)]
Quantity = Annotated[int | None, typer.Option(help="Nodes of a static pool.")]
Floor = Annotated[int | None, typer.Option(help="Nodes that a dynamic pool never goes below.")]
Weight = Annotated[int | None, typer.Option(help="Pools of a larger weight are tried first, 1 to 100.")]
Require = Annotated[
    list[str] | None, typer.Option(help="key=v1,v2, key!=v1, key>5, key<5, or key alone; may be repeated.")
]
Limit = Annotated[list[str] | None, typer.Option(help="nodes=5, usd_hour=2, cpu=64, ...; may be repeated.")]
Label = Annotated[list[str] | None, typer.Option(help="key=value, of its nodes; may be repeated.")]
TaintOption = Annotated[
    list[str] | None, typer.Option(help="key=value:Effect or key:Effect, of its nodes; may be repeated.")
]


@app.command()
def create(
    run: typer.Context,
    cluster: Cluster,
    file: File = None,
    name: Annotated[str | None, typer.Option(help="Wins over the document's name.")] = None,
    provider: Annotated[
        str | None, typer.Option(help="Default: the cheapest of all serves each node.", autocompletion=provider_names)
    ] = None,
    quantity: Quantity = None,
    floor: Floor = None,
    weight: Weight = None,
    require: Require = None,
    limit: Limit = None,
    label: Label = None,
    taint: TaintOption = None,
    zone: Zone = None,
    max_price: MaxPrice = None,
    root_disk: RootDisk = None,
    update_strategy: Strategy = None,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Make a pool, from a file, from options, or both (options win). Static with a quantity, otherwise dynamic."""
    context = contexts.of(run)
    body, manifest = read_either(context, file, "pool", ["Pool", "NodePool"]) if file else ({}, False)
    options = options_of(quantity, floor, weight, require, limit, label, taint)
    options |= {key: value for key, value in (("name", name), ("provider", provider)) if value is not None}
    options |= fields_of(zone, max_price, root_disk, update_strategy)
    context.field_sources.append(source_of_options(options))
    with context.client() as client:
        if manifest:
            if options:
                raise BadInput("a manifest says everything itself: give no options beside it")
            pool = _from_manifest(context, client, cluster, body, output, dry_run=dry_run)
        else:
            body = merged(body, options)
            if "name" not in body:
                raise BadInput("give --file, or at least --name")
            pool = _from_body(context, client, cluster, body, output, dry_run=dry_run)
        if pool is None:
            return
        context.say(f"Pool {pool.name} of cluster {cluster} is made.")
        plans.warn(context, pool.warnings)
        if wait:
            pool = _waited(context, client, cluster, pool.name, timeout)
    show_one(context, output, POOLS, pool)


def _from_body(
    context: contexts.Context, client: Client, cluster: str, body: dict[str, Any], output: Form, *, dry_run: bool
) -> Pool | None:
    """The pool; None when it was only planned."""
    if dry_run:
        plans.show(context, output, client.pools.plan_create(cluster, body))
        return None
    return client.pools.create(cluster, body)


def _from_manifest(
    context: contexts.Context, client: Client, cluster: str, manifest: dict[str, Any], output: Form, *, dry_run: bool
) -> Pool | None:
    """The pool that the manifest made; None when it was only planned."""
    spec = manifest.get("spec")
    if manifest.get("kind") == "Pool" and isinstance(spec, dict):
        manifest = {**manifest, "spec": {"cluster": cluster, **spec}}
    manifest = of_cluster(manifest, cluster)
    if dry_run:
        plans.show(context, output, client.manifests.plan([manifest], create_only=True))
        return None
    plans.warn(context, client.manifests.apply([manifest], create_only=True).every_warning)
    return client.pools.get(cluster, str((manifest.get("metadata") or {}).get("name")))


@app.command("list")
def list_(
    run: typer.Context,
    cluster: Annotated[
        str | None, typer.Option(help="Only pools of this cluster, by name or id.", autocompletion=cluster_names)
    ] = None,
    watch: Watch = False,
    output: Output = Form.TABLE,
) -> None:
    """List pools, of one cluster or of all. With their nodes (available, of those asked for) and price."""
    context = contexts.of(run)
    if cluster is None and watch:
        raise BadInput("--watch follows the pools of one cluster: give --cluster")
    with context.client() as client:
        if cluster is None:
            names, pools = of_all_clusters(client)
            show_many(context, output, POOLS if output is Form.NAME else with_cluster(names), pools)
            return
        if watch:
            watching.watch_list(context, client, output, listings.pools(client, client.clusters.get(cluster).id))
        show_many(context, output, POOLS, client.pools.list(cluster))


@app.command()
def get(
    run: typer.Context,
    pool: Name,
    cluster: Cluster,
    manifest: Manifest = False,
    watch: Watch = False,
    output: Output = Form.TABLE,
) -> None:
    """Show one pool."""
    context = contexts.of(run)
    with context.client() as client:
        if manifest:
            write_yaml_or_json(output, client.pools.manifest(cluster, pool))
            return
        if watch:
            records = client.pools.watch(cluster, pool, on_trouble=watching.trouble(context))
            watching.watch_one(context, output, POOLS, records)
            return
        show_one(context, output, POOLS, client.pools.get(cluster, pool))


@app.command()
def describe(run: typer.Context, pool: Name, cluster: Cluster, output: Output = Form.TABLE) -> None:
    """Describe a pool and what it lacks. Its nodes, their price, and what it may have are shown."""
    from stockyard_client.cli.output import descriptions

    context = contexts.of(run)
    with context.client() as client:
        record = client.pools.get(cluster, pool)
        if output is Form.TABLE:
            descriptions.pool(context, client, client.clusters.get(cluster), record)
        else:
            show_one(context, output, POOLS, record)


@app.command("edit")
@app.command("update")
def update(
    run: typer.Context,
    pool: Name,
    cluster: Cluster,
    assignments: Set = None,
    file: File = None,
    quantity: Quantity = None,
    floor: Floor = None,
    weight: Weight = None,
    require: Require = None,
    limit: Limit = None,
    label: Label = None,
    taint: TaintOption = None,
    zone: Zone = None,
    max_price: MaxPrice = None,
    root_disk: RootDisk = None,
    update_strategy: Strategy = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Change a pool by options, fields, or a merge patch. `edit` without any opens your editor (EDITOR).

    Options win. Requirements and taints are replaced as a whole. Limits and labels are merged; an empty value (gpu=)
    removes one.
    """
    context = contexts.of(run)
    patch = read_patch(context, file, "pool") if file else {}
    options = options_of(quantity, floor, weight, require, limit, label, taint)
    options |= fields_of(zone, max_price, root_disk, update_strategy)
    for field in ("limits", "labels"):
        if field in options:
            options[field] = {key: value or None for key, value in options[field].items()}
    context.field_sources.append(source_of_options(options))
    patch = merged(patch, options, joined=())
    if not patch and not assignments:
        if run.info_name != "edit":
            raise BadInput("say what changes: options, --set PATH=VALUE, or --file")
        pool_edits.edit(context, cluster, pool, yes=yes, output=output)
        return
    context.field_sources.append(source_of(assignments or ()))
    with context.client() as client:
        if assignments:
            patch = updates.merged(patch, patch_of(assignments, client.pools.get(cluster, pool).document()))
        _change(context, client, cluster, pool, patch, dry_run=dry_run, wait=wait, timeout=timeout, output=output)


@app.command()
def scale(
    run: typer.Context,
    pool: Name,
    cluster: Cluster,
    count: Annotated[
        int | None,
        typer.Option(help="Nodes of a pool of either kind; a dynamic one that may grow keeps how far, or --most says."),
    ] = None,
    quantity: Quantity = None,
    floor: Floor = None,
    most: Annotated[int | None, typer.Option(help="Nodes that a dynamic pool never goes beyond.")] = None,
    queue: Queue = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Change how many nodes a pool has. The quantity of a static one, floor and most of a dynamic one. A node group of
    the cluster's settings is changed there, by an operation."""
    patch = _sizes(count, quantity, floor, most) | ({"queue": True} if queue else {})
    context = contexts.of(run)
    with context.client() as client:
        record = client.pools.get(cluster, pool)
        if record.form == GROUP and quantity is not None:
            text = f"pool {pool} is a node group of the cluster's settings, and no static pool: give --count {quantity}"
            raise BadInput(text)
        settings = client.clusters.get(cluster).settings if record.form == GROUP else {}
        if quantity is None and count is None and "node_groups" in settings:
            changes.change(
                context,
                client,
                cluster,
                changes.queued(changes.resized(pool, floor, most), queue=queue),
                dry_run=dry_run,
                wait=wait,
                timeout=timeout,
                output=output,
            )
            return
        _change(
            context,
            client,
            cluster,
            pool,
            patch,
            dry_run=dry_run,
            wait=wait,
            timeout=timeout,
            output=output,
            latest=record,
        )


@app.command("add-group")
def add_group(
    run: typer.Context,
    name: Name,
    cluster: Cluster,
    type_: Annotated[list[str], typer.Option("--type", help="An instance type; may be repeated.")],
    count: Annotated[int, typer.Option(help="Nodes at first, and never fewer.")] = 1,
    most: Annotated[int | None, typer.Option(help="Nodes at most. Default: as many as --count.")] = None,
    spot: Annotated[bool, typer.Option("--spot", help="Take spot machines; a bid does so too.")] = False,
    zone: Zone = None,
    max_price: MaxPrice = None,
    root_disk: RootDisk = None,
    update_strategy: Strategy = None,
    label: Label = None,
    taint: TaintOption = None,
    queue: Queue = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Add a node group to a cluster on EC2. It stands in the settings, and becomes a pool by an operation."""
    group: dict[str, Any] = {"name": name, "role": "worker", "min_size": count, "max_size": most or count}
    group |= {"instance_types": type_, "capacity_type": "spot" if spot or max_price is not None else "on-demand"}
    group |= {"labels": pairs(label)} if label else {}
    group |= {"taints": [{"value": "", **taint_of(text)} for text in taint]} if taint else {}
    group |= group_fields_of(zone, max_price, root_disk, update_strategy)
    context, patch = contexts.of(run), changes.queued(changes.added(group), queue=queue)
    with context.client() as client:
        changes.change(context, client, cluster, patch, dry_run=dry_run, wait=wait, timeout=timeout, output=output)


@app.command()
def delete(
    run: typer.Context,
    pool: Name,
    cluster: Cluster,
    queue: Queue = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Give every node of a pool back; then the pool is gone."""
    context = contexts.of(run)
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.pools.plan_delete(cluster, pool))
            return
        text = f"Pool {pool} of cluster {cluster} is deleted."
        confirm(context, consequences.safely(consequences.of_pool(client, cluster, pool), text), yes=yes)
        record = client.pools.delete(cluster, pool, queue=queue)
        count = record.nodes.claims
        nodes = "1 node is" if count == 1 else f"{count} nodes are"
        context.say(f"Pool {pool} of cluster {cluster} is being deleted; {nodes} given back.")
        plans.warn(context, record.warnings)
        if wait:
            client.wait_pool_gone(cluster, pool, timeout=timeout, on_change=progress.lines(context))
            return
    show_one(context, output, POOLS, record)


def _sizes(count: int | None, quantity: int | None, floor: int | None, most: int | None) -> dict[str, Any]:
    """The sizes as a change of the pool says them. Raises ``BadInput`` for options that do not go together."""
    if floor is not None and most is not None and floor > most:
        raise BadInput(f"--floor {floor} is more than --most {most}")
    sizes_named = [count is not None, quantity is not None, floor is not None or (most is not None and count is None)]
    if sum(sizes_named) != 1 or (quantity is not None and most is not None):
        text = "give either --count, --quantity, of a static pool, or --floor and --most, of a dynamic one"
        raise BadInput(text)
    named = (("quantity", quantity), ("floor", floor), ("count", count))
    sizes: dict[str, Any] = {name: value for name, value in named if value is not None}
    return sizes if most is None else {**sizes, "limits": {"nodes": most}}


def _change(
    context: contexts.Context,
    client: Client,
    cluster: str,
    pool: str,
    patch: dict[str, Any],
    *,
    dry_run: bool,
    wait: bool,
    timeout: float | None,
    output: Form,
    latest: Pool | None = None,
) -> None:
    if dry_run:
        plans.show(context, output, client.pools.plan_update(cluster, pool, patch))
        return
    record = client.pools.update(cluster, pool, patch, latest=latest)
    plans.warn(context, record.warnings)
    if record.started_operation:
        context.say(f"Pool {pool} of cluster {cluster} is changed by operation {record.started_operation}.")
        operation = client.operations.get(record.started_operation)
        operations.finish(context, client, operation, wait=wait, timeout=timeout, output=output)
        return
    if wait:
        record = _waited(context, client, cluster, pool, timeout)
    show_one(context, output, POOLS, record)


def _waited(context: contexts.Context, client: Client, cluster: str, pool: str, timeout: float | None) -> Pool:
    return client.wait_pool(cluster, pool, timeout=timeout, on_change=progress.lines(context))
