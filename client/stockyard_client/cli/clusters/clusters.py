"""``stockyard cluster``: create, look at, and remove clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.clusters import kubeconfig, network, renewals, secrets, snapshots, usage
from stockyard_client.cli.clusters.expiry import Expires, expire, expires_at
from stockyard_client.cli.clusters.profiles import ProfileNames, choices_from, of_cluster
from stockyard_client.cli.documents.assignments import Set
from stockyard_client.cli.documents.field_sources import FieldSource
from stockyard_client.cli.input.completion import account_numbers, cluster_names, operation_ids
from stockyard_client.cli.input.confirmations import Yes, confirm
from stockyard_client.cli.input.inputs import pairs, read_body
from stockyard_client.cli.input.options import DryRun, KeepFailed, Manifest, Queue, Timeout, Wait, Watch
from stockyard_client.cli.operations import changes, listings, operations, timelines, updates
from stockyard_client.cli.operations import events as event_lists
from stockyard_client.cli.output import consequences, plans, progress, watching
from stockyard_client.cli.output.output import (
    CLUSTERS,
    ONE_CLUSTER,
    OPERATIONS,
    Form,
    Output,
    show_many,
    show_one,
    write_document,
    write_yaml_or_json,
)
from stockyard_client.cli.visible import echo

if TYPE_CHECKING:
    from stockyard_client.client import Client
    from stockyard_client.models import Cluster

app = typer.Typer(no_args_is_help=True, help="Kubernetes clusters.", rich_markup_mode=None)
app.command()(snapshots.snapshots)
app.command()(snapshots.restore)
app.command()(usage.usage)
app.command()(network.network)
app.command()(renewals.repave)
app.command()(renewals.certificates)
app.command("update")(updates.update_cluster)
app.command("edit")(updates.edit_cluster)
app.command("change", hidden=True)(updates.update_cluster)
app.command()(expire)
app.command()(kubeconfig.kubeconfig)
app.command("client-secret")(secrets.client_secret)
app.command("agent")(secrets.agent)
app.command("profiles")(of_cluster)
Name = Annotated[str, typer.Argument(metavar="CLUSTER", help="Name or id.", autocompletion=cluster_names)]


@app.command()
def create(
    run: typer.Context,
    file: Annotated[str, typer.Option("--file", "-f", help="JSON or YAML document; - reads standard input.")],
    name: Annotated[str | None, typer.Option(help="Wins over the document's name.")] = None,
    description: Annotated[str | None, typer.Option(help="Wins over the document's.")] = None,
    account: Annotated[
        str | None,
        typer.Option(help="Number or name; wins over the document's cloud_account_id.", autocompletion=account_numbers),
    ] = None,
    region: Annotated[str | None, typer.Option(help="Wins over settings.region_name.")] = None,
    key_pair: Annotated[str | None, typer.Option(help="Wins over settings.key_pair.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="key=value; may be repeated.")] = None,
    profile: ProfileNames = None,
    keep_failed: KeepFailed = None,
    expires: Expires = None,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Create a cluster from a document. The same document again changes nothing."""
    context = contexts.of(run)
    body = read_body(context, file, "cluster")
    options_given = {
        "/name": name and "--name",
        "/description": description and "--description",
        "/cloud_account_id": account and "--account",
        "/settings/region_name": region and "--region",
        "/settings/key_pair": key_pair and "--key-pair",
        "/tags": tag and "--tag",
        "/profiles": profile and "--profile",
        "/expires_at": expires and "--expires",
    }
    context.field_sources.append(
        FieldSource(options={pointer: option for pointer, option in options_given.items() if option})
    )
    _override(body, {"name": name, "description": description, "keep_failed": keep_failed})
    if expires is not None:
        body["expires_at"] = expires_at(expires, context.now())
    settings = {"region_name": region, "key_pair": key_pair}
    if any(value is not None for value in settings.values()):
        body["settings"] = _override(dict(body.get("settings") or {}), settings)
    if tag:
        body["tags"] = {**(body.get("tags") or {}), **pairs(tag)}
    if profile:
        body["profiles"] = choices_from(profile)
    with context.client() as client:
        _override(body, {"cloud_account_id": _account_number(client, account or body.get("cloud_account_id"))})
        if dry_run:
            plans.show(context, output, client.clusters.plan_create(body, lenient=True))
            return
        cluster = client.clusters.create(body, lenient=True)
        is_new = _announce(context, cluster)
        if wait and cluster.operation_id:
            cluster = progress.wait_for_cluster(context, client, cluster, timeout)
    show_one(context, output, CLUSTERS, cluster)
    if wait:
        context.say(f"Next: stockyard cluster kubeconfig {cluster.name}")
    elif cluster.operation_id and is_new:
        progress.say_how_to_follow(context, cluster.operation_id)


def _announce(context: contexts.Context, cluster: Cluster) -> bool:
    """Say that a new cluster is being made, the price, and warnings, and return whether the cluster is new.

    A cluster that was there already has a warning at its name.
    """
    is_new = all(warning.get("pointer") != "/name" for warning in cluster.warnings)
    if is_new:
        context.say(f"Cluster {cluster.name} ({cluster.id}) is being made by operation {cluster.operation_id}.")
    if cluster.price is not None:
        context.say(f"It costs {plans.amount(cluster.price)}.")
    plans.warn(context, cluster.warnings)
    return is_new


def _account_number(client: Client, account: Any) -> Any:
    """The number of an account that is called so. What is no text is sent as it is."""
    if not isinstance(account, str):
        return account
    return int(account) if account.isdecimal() else client.accounts.get(account).id


@app.command("list")
def list_(
    run: typer.Context,
    status: Annotated[str | None, typer.Option(help="preparing, ready, failed or deleting.")] = None,
    phase: Annotated[str | None, typer.Option(help="Only those whose operation is in this phase.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only those with this tag, key=value.")] = None,
    watch: Watch = False,
    output: Output = Form.TABLE,
) -> None:
    """List the clusters."""
    context = contexts.of(run)
    query: dict[str, Any] = {"status": status, "phase": phase, "tag": tag}
    with context.client() as client:
        if watch:
            watching.watch_list(context, client, output, listings.clusters(client, query))
        show_many(context, output, CLUSTERS, client.clusters.list(**query))


@app.command()
def get(
    run: typer.Context,
    cluster: Name,
    manifest: Manifest = False,
    watch: Watch = False,
    output: Output = Form.TABLE,
) -> None:
    """Show one cluster."""
    context = contexts.of(run)
    with context.client() as client:
        if manifest:
            write_yaml_or_json(output, client.clusters.manifest(cluster))
            return
        if watch:
            records = client.clusters.watch(cluster, on_trouble=watching.trouble(context))
            watching.watch_one(context, output, CLUSTERS, records)
            return
        record = client.clusters.get(cluster)
        has_bastion = bool(record.document().get("bastion"))
        show_one(context, output, ONE_CLUSTER if has_bastion else CLUSTERS, record)


@app.command()
def describe(run: typer.Context, cluster: Name, output: Output = Form.TABLE) -> None:
    """Describe a cluster and what it lacks. Its price, pools, nodes, last operation and events are shown, and what to
    type next."""
    from stockyard_client.cli.clusters import descriptions as cluster_descriptions

    context = contexts.of(run)
    with context.client() as client:
        if output in {Form.JSON, Form.YAML}:
            write_document(output, client.clusters.tree(cluster))
            return
        record = client.clusters.get(cluster)
        if output is Form.NAME:
            echo(record.name)
            return
        operation = operations.last(client, record.operation_id)
        cluster_descriptions.describe(context, client, record, operation)


@app.command()
def tree(
    run: typer.Context,
    cluster: Name,
    everything: Annotated[bool, typer.Option("--all", help="With each phase and each thing in the cloud.")] = False,
    output: Output = Form.TABLE,
) -> None:
    """Draw a cluster with all that is below it. What stands in the cloud, its pools, claims and nodes are shown."""
    from stockyard_client.cli.clusters import descriptions as cluster_descriptions
    from stockyard_client.cli.output import trees

    context = contexts.of(run)
    with context.client() as client:
        below = client.clusters.tree(cluster)
    if output in {Form.JSON, Form.YAML}:
        write_document(output, below)
    elif output is Form.NAME:
        echo(below["name"])
    else:
        trees.draw(context, cluster_descriptions.folded(below, everything=everything))


@app.command()
def events(
    run: typer.Context,
    cluster: Name,
    after: timelines.After = None,
    since: timelines.Since = None,
    limit: timelines.Limit = None,
    follow: timelines.Follow = False,
    output: Output = Form.TABLE,
) -> None:
    """List what happened to a cluster. A cluster that is gone is named by its id."""
    context = contexts.of(run)
    with context.client() as client:
        subject = event_lists.subject_of(client, cluster)
        if follow and not (since or limit or after):
            # all that there is, and what comes
            since = "2020-01-01T00:00:00Z"
        query = {"subject": subject}
        event_lists.show(context, client, output, query, timelines.Part(since, limit, after), follow=follow)


@app.command()
def delete(
    run: typer.Context,
    cluster: Name,
    force: Annotated[bool, typer.Option(help="Forget one whose deletion does not end; says what may be left.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Delete a cluster and everything made for it."""
    context = contexts.of(run)
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.clusters.plan_delete(cluster))
            return
        lines = consequences.safely(
            consequences.of_cluster(client, cluster, force=force), f"Cluster {cluster} is deleted."
        )
        confirm(context, lines, yes=yes, question="Forget it?" if force else "Delete it?")
        if force:
            forced = client.clusters.force_delete(cluster)
            context.say(f"Cluster {cluster} is forgotten. What may be left is named here.", "yellow")
            write_yaml_or_json(output, forced)
            return
        operation = client.clusters.delete(cluster)
        context.say(f"Cluster {cluster} is being deleted by operation {operation.id}.")
        operations.finish(context, client, operation, wait=wait, timeout=timeout, output=output)


@app.command()
def upgrade(
    run: typer.Context,
    cluster: Name,
    to: Annotated[str, typer.Option("--to", metavar="MINOR", help="The next minor of Kubernetes, such as 1.36.")],
    queue: Queue = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Upgrade a cluster by one minor of Kubernetes. It goes on serving."""
    context, patch = contexts.of(run), {"kubernetes_version": to}
    with context.client() as client:
        sent = changes.queued(lambda _: patch, queue=queue)
        changes.change(context, client, cluster, sent, dry_run=dry_run, wait=wait, timeout=timeout, output=output)


@app.command()
def cancel(
    run: typer.Context,
    cluster: Name,
    queued: Annotated[
        str | None,
        typer.Option(metavar="OPERATION", help="One that waits and is not to begin.", autocompletion=operation_ids),
    ] = None,
    output: Output = Form.TABLE,
) -> None:
    """Stop a change of a ready cluster. It stops between two of its steps; a resume goes on."""
    context = contexts.of(run)
    with context.client() as client:
        operation = client.clusters.cancel(cluster, queued)
        done = "It had not begun." if queued else "What it has done so far stands."
        context.say(f"Operation {operation.id} is stopped. {done}")
        show_one(context, output, OPERATIONS, operation)


@app.command()
def resume(
    run: typer.Context,
    cluster: Name,
    other: Annotated[
        str | None,
        typer.Option(
            "--with", metavar="FILE", help="Merge patch for a creation that has failed; - reads standard input."
        ),
    ] = None,
    assignments: Set = None,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Go on with a failed operation, also with other settings.

    It goes on from the phase that failed, or from an earlier one that makes again what is gone; a creation with other
    settings goes through all of its phases again.
    """
    context = contexts.of(run)
    patch = (
        updates.requested_patch(context, assignments, other, "cluster") if assignments or other is not None else None
    )
    with context.client() as client:
        # only a field by --set may need to know what there is
        record = client.clusters.get(cluster).document() if assignments else {}
        document = patch(record) if patch else None
        if dry_run:
            plans.show(context, output, client.clusters.plan_resume(cluster, document))
            return
        operation = client.clusters.resume(cluster, document)
        context.say(f"Cluster {cluster} continues with operation {operation.id}.")
        operations.finish(context, client, operation, wait=wait, timeout=timeout, output=output)


app.command("retry", hidden=True)(resume)


def _override(document: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    document.update({key: value for key, value in options.items() if value is not None})
    return document
