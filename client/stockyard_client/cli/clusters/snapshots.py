"""``stockyard cluster snapshots`` and ``restore``: the snapshots of a cluster's etcd."""

from __future__ import annotations

from typing import Annotated

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.input.completion import cluster_names, snapshot_ids
from stockyard_client.cli.input.confirmations import Yes, confirm
from stockyard_client.cli.input.options import DryRun, Timeout, Wait
from stockyard_client.cli.operations import operations
from stockyard_client.cli.output import consequences, plans
from stockyard_client.cli.output.output import Form, Output, write_document
from stockyard_client.cli.output.tables import write_table
from stockyard_client.cli.visible import echo

Name = Annotated[str, typer.Argument(metavar="CLUSTER", help="Name or id.", autocompletion=cluster_names)]


def snapshots(run: typer.Context, cluster: Name, output: Output = Form.TABLE) -> None:
    """List the snapshots of etcd that a cluster has in its cloud."""
    context = contexts.of(run)
    with context.client() as client:
        view = client.clusters.snapshots(cluster)
    if output in {Form.JSON, Form.YAML}:
        write_document(output, view)
        return
    items = view["items"]
    if output is Form.NAME:
        for item in items:
            echo(item["id"])
        return
    if items:
        rows = [[item["id"], item["stored_at"], str(item["size"])] for item in items]
        write_table(context, ["ID", "STORED", "BYTES"], rows)
    else:
        context.say("No snapshot was taken yet.")
    context.say(f"One each {view['interval_hours']} h, {view['keep']} stay, in {view['place']}")
    if view["failure"]:
        context.say(f"The last try failed at {view['failure']['at']}: {view['failure']['message']}")


def restore(
    run: typer.Context,
    cluster: Name,
    snapshot: Annotated[str, typer.Option("--snapshot", help="Its id, or latest.", autocompletion=snapshot_ids)],
    yes: Yes = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Restore etcd from a snapshot. What was written after it is forgotten: a terminal asks before, and --dry-run says
    how much that is."""
    context = contexts.of(run)
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.clusters.plan_restore(cluster, snapshot))
            return
        confirm(context, consequences.of_restore(client, cluster, snapshot), yes=yes, question="Restore it?")
        operation = client.clusters.restore(cluster, snapshot)
        context.say(f"Cluster {cluster} is restored by operation {operation.id}.")
        operations.finish(context, client, operation, wait=wait, timeout=timeout, output=output)
