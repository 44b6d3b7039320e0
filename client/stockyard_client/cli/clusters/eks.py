"""``stockyard eks``: clusters on EKS, by the short name that their manifest has in its source."""

from __future__ import annotations

from typing import Annotated

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.clusters import clusters, kubeconfig
from stockyard_client.cli.input.options import Watch
from stockyard_client.cli.operations import listings, updates
from stockyard_client.cli.output import watching
from stockyard_client.cli.output.output import CLUSTERS, Form, Output, show_many
from stockyard_client.cli.output.tables import Column, Printer
from stockyard_client.models import Cluster

DRIVER = "eks"
EKS_CLUSTERS: Printer[Cluster] = Printer(
    (Column("NAMESPACE", lambda c: c.settings.get("namespace") or None), *CLUSTERS.columns), CLUSTERS.name
)

app = typer.Typer(no_args_is_help=True, help="Clusters on EKS.", rich_markup_mode=None)
app.command()(clusters.get)
app.command()(clusters.describe)
app.command()(clusters.tree)
app.command()(clusters.events)
app.command()(kubeconfig.kubeconfig)
app.command("update")(updates.update_cluster)
app.command("edit")(updates.edit_cluster)
app.command()(clusters.upgrade)
app.command()(clusters.delete)


@app.command("list")
def list_(
    run: typer.Context,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only those whose manifest has this namespace.")
    ] = None,
    watch: Watch = False,
    output: Output = Form.TABLE,
) -> None:
    """List the clusters on EKS, each with the namespace of its manifest."""
    context = contexts.of(run)

    def is_wanted(cluster: Cluster) -> bool:
        of_driver = cluster.document().get("driver") == DRIVER
        return of_driver and namespace in (None, cluster.settings.get("namespace"))

    with context.client() as client:
        if watch:
            watching.watch_list(context, client, output, listings.clusters(client, {}, is_wanted, EKS_CLUSTERS))
        show_many(
            context, output, EKS_CLUSTERS, [each for each in client.clusters.list(page_size=200) if is_wanted(each)]
        )
