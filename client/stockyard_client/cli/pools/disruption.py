"""``stockyard disruption``: nodes that leave, why, what it saves, and the switches that pause it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.input.completion import cluster_names, pool_names
from stockyard_client.cli.output.ages import age
from stockyard_client.cli.output.node_tables import dollars
from stockyard_client.cli.output.output import Form, Output, show_many, show_one, write_document
from stockyard_client.cli.output.tables import Column, Printer
from stockyard_client.cli.visible import echo
from stockyard_client.resources.disruption import ClusterDisruption, PreviewedNode

app = typer.Typer(
    no_args_is_help=True, help="Nodes that leave: empty, out of date, too old or too dear.", rich_markup_mode=None
)
Cluster = Annotated[str, typer.Argument(metavar="CLUSTER", help="By name or id.", autocompletion=cluster_names)]
SomeCluster = Annotated[
    str | None, typer.Argument(metavar="CLUSTER", help="By name or id.", autocompletion=cluster_names)
]
Pool = Annotated[str | None, typer.Option(help="Only this pool of the cluster.", autocompletion=pool_names)]
All = Annotated[bool, typer.Option("--all", help="All clusters.")]

_POSSIBLE = (
    "USD POSSIBLE/MONTH: what the nodes cost above the least that any packing of their pods costs. No search has to"
    " reach it."
)


def _paused(state: ClusterDisruption) -> str:
    """Whether a switch pauses the whole cluster, or which pools are paused."""
    return "yes" if state.paused_by else ", ".join(state.paused_pools) or "no"


STATES: Printer[ClusterDisruption] = Printer(
    (
        Column("STATE", lambda d: d.state),
        Column("REASON", lambda d: d.reason),
        Column("NODES THAT GO", lambda d: len(d.nodes)),
        Column("THAT COME", lambda d: len(d.replacements)),
        Column("PAUSED", _paused),
        Column("USD SAVED/MONTH", lambda d: f"{d.usd_month_saved:.2f}"),
        Column("USD POSSIBLE/MONTH", lambda d: None if d.usd_month_possible is None else f"{d.usd_month_possible:.2f}"),
        Column("DECIDED", lambda d: d.decided_at, wide=True),
        Column("BY POOL", lambda d: ", ".join(f"{s.pool} {s.usd_month:.2f}" for s in d.savings), wide=True),
    ),
    lambda d: d.cluster_id,
)
NODES: Printer[PreviewedNode] = Printer(
    (
        Column("NODE", lambda n: n.name),
        Column("POOL", lambda n: n.pool),
        Column("TYPE", lambda n: n.type, spare=True),
        Column("USD/HOUR", lambda n: dollars(n.usd_hour)),
        Column("LEAVES", lambda n: "yes" if n.leaves else "no"),
        Column("WHY", lambda n: n.why, give=2),
        Column("UNTIL", lambda n: n.until, wide=True),
    ),
    lambda n: n.name,
)


@app.command()
def show(run: typer.Context, cluster: SomeCluster = None, output: Output = Form.TABLE) -> None:
    """Show what is being done to a cluster's nodes. Without a cluster: whether disruption is paused for all."""
    context = contexts.of(run)
    with context.client() as client:
        if cluster is None:
            switch = client.disruption.switch()
            if output in {Form.JSON, Form.YAML}:
                write_document(output, switch.document())
            else:
                echo("paused for all clusters" if switch.paused else "not paused for all clusters")
                if not switch.paused:
                    context.say("Of one cluster and its pools: stockyard disruption show CLUSTER", "dim")
            return
        state = client.disruption.get(cluster)
    show_one(context, output, STATES, state)
    if state.message:
        context.say(state.message)
    if output is Form.TABLE and state.usd_month_possible is not None:
        context.say(_POSSIBLE, "dim")


@app.command()
def preview(run: typer.Context, cluster: Cluster, output: Output = Form.TABLE) -> None:
    """Say which nodes would leave now, why, and what it saves. Also which rule keeps each of the others."""
    context = contexts.of(run)
    with context.client() as client:
        answer = client.disruption.preview(cluster)
    if output in {Form.JSON, Form.YAML}:
        write_document(output, answer.document())
        return
    if answer.nodes:
        show_many(context, output, NODES, answer.nodes)
    if output is not Form.NAME:
        context.out.print(Text(answer.message, style="bold"), soft_wrap=True)
        since = age(answer.observed_at, context.now())
        if since is not None:
            context.say(
                f"This is what the cluster's agent told {since} ago. Spot counts with its least price of late.", "dim"
            )


@app.command()
def pause(run: typer.Context, cluster: SomeCluster = None, pool: Pool = None, every: All = False) -> None:
    """Let no node leave for its price, its drift or its age. Of a pool, of a cluster, or of all clusters."""
    _switch(run, cluster, pool, every=every, paused=True)


@app.command()
def resume(run: typer.Context, cluster: SomeCluster = None, pool: Pool = None, every: All = False) -> None:
    """Let the nodes leave again. Of a pool, of a cluster, or of all clusters."""
    _switch(run, cluster, pool, every=every, paused=False)


def _switch(run: typer.Context, cluster: str | None, pool: str | None, *, every: bool, paused: bool) -> None:
    context = contexts.of(run)
    if every == (cluster is not None) or (every and pool is not None):
        raise BadInput("give a cluster, or --all alone")
    word = "is paused" if paused else "goes on"
    with context.client() as client:
        if cluster is None:
            client.disruption.pause_all(paused=paused)
            context.say(f"Disruption of all clusters {word}.")
        elif pool is not None:
            client.pools.update(cluster, pool, {"disruption": {"paused": paused}})
            context.say(f"Disruption of pool {pool} of cluster {cluster} {word}.")
        else:
            state = client.disruption.pause(cluster, paused=paused)
            context.say(f"Disruption of cluster {cluster} {word}.")
            if state.paused_by and not paused:
                context.say(f"Still: {state.paused_by}.", "yellow")
