"""``stockyard budget``: what a month may cost, of the tenant, a cluster or a pool."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.input.completion import cluster_names
from stockyard_client.cli.input.options import DryRun
from stockyard_client.cli.output import plans
from stockyard_client.cli.output.output import Form, Output, show_many, write_document
from stockyard_client.cli.output.tables import Column, Printer
from stockyard_client.client import Client
from stockyard_client.models import Plan
from stockyard_client.resources.costs import Budget, Costs

USD_MONTH = "usd_month"
app = typer.Typer(no_args_is_help=True, help="What a month may cost.", rich_markup_mode=None)
ClusterOption = Annotated[
    str | None, typer.Option("--cluster", metavar="CLUSTER", help="Of this cluster.", autocompletion=cluster_names)
]
PoolOption = Annotated[str | None, typer.Option("--pool", metavar="POOL", help="Of this pool of the cluster.")]


def scope_text(budget: Budget) -> str:
    """The owner of the budget, in words."""
    cluster = budget.cluster or budget.cluster_id
    if budget.scope == "pool":
        return f"pool {budget.pool} of {cluster}"
    return f"cluster {cluster}" if budget.scope == "cluster" else "tenant"


def _figure(budget: Budget, amount: float) -> str:
    """An amount of what counts; more where a price is not known."""
    return f"{'' if budget.complete else 'at least '}{amount:,.2f}"


BUDGETS: Printer[Budget] = Printer(
    (
        Column("OF", scope_text, give=1),
        Column("USD/MONTH", lambda b: f"{b.usd_month:,.2f}"),
        Column("SPENT", lambda b: _figure(b, b.spent)),
        Column("FORECAST", lambda b: _figure(b, b.forecast)),
        Column("USED", lambda b: f"{b.percent} %"),
        Column("STATE", lambda b: "reached" if b.reached else "within"),
    ),
    scope_text,
)


@app.command()
def show(
    run: typer.Context, cluster: ClusterOption = None, pool: PoolOption = None, output: Output = Form.TABLE
) -> None:
    """Show the budgets of this month.

    What is spent of each, and what it comes to by the end of the month.
    """
    context = contexts.of(run)
    with context.client() as client:
        costs = client.costs.get(cluster)
    budgets = [budget for budget in costs.budgets if pool is None or budget.pool == pool]
    if output in {Form.JSON, Form.YAML}:
        write_document(output, [budget.document() for budget in budgets])
        return
    show_many(context, output, BUDGETS, budgets)
    if not budgets:
        context.say(f"No budget is set. {_spent(costs)}", "dim")


@app.command("set")
def set_(
    run: typer.Context,
    usd: Annotated[float, typer.Argument(metavar="USD", min=0, help="What a calendar month of UTC may cost.")],
    cluster: ClusterOption = None,
    pool: PoolOption = None,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Set a budget.

    Of the tenant it is a quota: the platform sets it, in whole USD, and --tenant names the tenant.
    Nothing new is bought that would bring the month above it, and nothing that runs is ended.
    """
    _change(run, usd, cluster, pool, dry_run=dry_run, output=output)


@app.command()
def clear(
    run: typer.Context,
    cluster: ClusterOption = None,
    pool: PoolOption = None,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Take a budget away. What waits for room goes on."""
    _change(run, None, cluster, pool, dry_run=dry_run, output=output)


def _change(
    run: typer.Context, usd: float | None, cluster: str | None, pool: str | None, *, dry_run: bool, output: Form
) -> None:
    if pool is not None and cluster is None:
        raise BadInput("give --cluster beside --pool")
    if cluster is None and usd is not None and usd % 1:
        raise BadInput("the budget of a tenant is in whole USD")
    context = contexts.of(run)
    with context.client() as client:
        if dry_run:
            plans.show(context, output, _plan(client, usd, cluster, pool))
            return
        _send(client, usd, cluster, pool)
        budgets = client.costs.get(cluster).budgets
    own = [budget for budget in budgets if (budget.scope, budget.pool) == (_kind(cluster, pool), pool)]
    if output in {Form.JSON, Form.YAML}:
        write_document(output, [budget.document() for budget in own])
        return
    if usd is None:
        context.say("The budget was taken away.")
        return
    show_many(context, output, BUDGETS, own)


def _kind(cluster: str | None, pool: str | None) -> str:
    return "pool" if pool is not None else "cluster" if cluster is not None else "tenant"


def _limits(usd: float | None) -> dict[str, Any]:
    return {"limits": {USD_MONTH: None if usd is None else f"{usd:.15g}"}}


def _plan(client: Client, usd: float | None, cluster: str | None, pool: str | None) -> Plan:
    if cluster is None:
        return client.quotas.plan_set(USD_MONTH, None if usd is None else int(usd))
    if pool is None:
        return client.clusters.plan_update(cluster, _limits(usd))
    return client.pools.plan_update(cluster, pool, _limits(usd))


def _send(client: Client, usd: float | None, cluster: str | None, pool: str | None) -> None:
    if cluster is None:
        client.quotas.set(USD_MONTH, None if usd is None else int(usd))
    elif pool is None:
        client.clusters.update(cluster, _limits(usd))
    else:
        client.pools.update(cluster, pool, _limits(usd))


def _spent(costs: Costs) -> str:
    least = "" if costs.complete else "at least "
    return f"{costs.month} has cost {least}{costs.known_spent:,.2f} USD so far."
