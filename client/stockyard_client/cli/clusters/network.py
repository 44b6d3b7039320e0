"""``stockyard cluster network``: the machines of a cluster's overlay, and how they reach each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.input.completion import cluster_names
from stockyard_client.cli.output.ages import age
from stockyard_client.cli.output.output import Form, Output, write_document
from stockyard_client.cli.output.tables import write_table
from stockyard_client.cli.visible import echo

HEADINGS = ["MEMBER", "ADDRESS", "NETWORK", "STATE", "SINCE", "HUB", "DIRECT", "RELAYED", "HANDSHAKE"]
Name = Annotated[str, typer.Argument(metavar="CLUSTER", help="Name or id.", autocompletion=cluster_names)]


def network(run: typer.Context, cluster: Name, output: Output = Form.TABLE) -> None:
    """Show the overlay of a cluster. Its members, their addresses and paths, and what is down since when."""
    context = contexts.of(run)
    with context.client() as client:
        view = client.clusters.network(cluster)
    if output in {Form.JSON, Form.YAML}:
        write_document(output, view)
        return
    members = view["members"]
    if output is Form.NAME:
        for member in members:
            echo(member["name"])
        return
    if view["range"] is None:
        context.say(f"Cluster {cluster} has no overlay: one gets it at its creation, by settings.overlay.")
        return
    if members:
        write_table(context, HEADINGS, [_cells(member, context.now()) for member in members])
    down = sum(member["state"] == "down" for member in members)
    report_age = age(view["observed_at"], context.now())
    when = f"as of {report_age} ago" if report_age else "nothing was told yet"
    context.say(f"{len(members)} members in {view['range']}, {down} down, {when}.")
    for member in members:
        if member["through_hub"]:
            context.say(f"{member['name']} reaches through its hub: {', '.join(member['through_hub'])}.")


def _cells(member: Mapping[str, Any], now: float) -> list[str]:
    through = "itself" if member["hub"] else member["home"] or ""
    counts = ["" if member[name] is None else str(member[name]) for name in ("direct", "relayed")]
    moments = [age(member[name], now) or "" for name in ("since", "handshake_at")]
    columns = [member["name"], member["address"], member["network"], member["state"]]
    return [*columns, moments[0], through, *counts, moments[1]]
