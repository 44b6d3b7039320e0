"""``stockyard cluster usage``: what pods ask for of a cluster's nodes."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.input.completion import cluster_names
from stockyard_client.cli.output.output import Form, Output, write_document
from stockyard_client.cli.output.tables import write_table
from stockyard_client.cli.visible import echo

Name = Annotated[str, typer.Argument(metavar="CLUSTER", help="Name or id.", autocompletion=cluster_names)]


def usage(run: typer.Context, cluster: Name, output: Output = Form.TABLE) -> None:
    """Show what pods ask for of each node."""
    context = contexts.of(run)
    with context.client() as client:
        view = client.clusters.usage(cluster)
    if output in {Form.JSON, Form.YAML}:
        write_document(output, view)
    elif output is Form.NAME:
        for node in view["nodes"]:
            echo(node["name"])
    elif view.get("observed_at") is None:
        context.say("No agent has told of the cluster yet.")
    else:
        rows = [[node["name"], node["pool"] or "", *_parts(node)] for node in view["nodes"]]
        rows += [[f"all of {pool['pool'] or 'no pool'}", str(pool["nodes"]), *_parts(pool)] for pool in view["pools"]]
        write_table(context, ["NODE", "POOL", "CPU", "MEMORY", "PODS"], rows)


def _parts(use: dict[str, Any]) -> list[str]:
    """Requests of cpu, memory and pods, each with its part of all."""
    names = ("cpu", "memory", "pods")
    return [f"{use['requested'].get(name, '0')} ({use['used'].get(name, 0):.0%})" for name in names]
