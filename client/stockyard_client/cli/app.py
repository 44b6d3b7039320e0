"""The root command: options of every call, and the groups below it."""

from __future__ import annotations

from typing import Annotated

import stamina.instrumentation
import typer

from stockyard_client.cli import (
    accounts,
    apply,
    claims,
    clusters,
    disruption,
    node_providers,
    operations,
    people,
    placements,
    pools,
    profiles,
    simulations,
)
from stockyard_client.cli.context import Context
from stockyard_client.cli.failures import Commands
from stockyard_client.cli.output import Form, Output, write_document
from stockyard_client.version import VERSION

_HELP = """Kubernetes clusters from Stockyard.

Environment: STOCKYARD_URL, STOCKYARD_TOKEN, STOCKYARD_ISSUER, STOCKYARD_TENANT, NO_COLOR."""
_EPILOG = (
    "Exit codes: 0 done, 1 failed, 2 usage or input, 3 not found, 4 not allowed, 5 conflict, "
    "6 quota or capacity, 124 timed out, 130 interrupted."
)

app = typer.Typer(
    name="stockyard",
    cls=Commands,
    no_args_is_help=True,
    # plain help and no tracebacks with local variables: those would show tokens
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=_HELP,
    epilog=_EPILOG,
)
app.add_typer(accounts.app, name="account")
app.add_typer(clusters.app, name="cluster")
app.add_typer(operations.app, name="operation")
app.add_typer(node_providers.app, name="provider")
app.add_typer(node_providers.types, name="type")
app.add_typer(pools.app, name="pool")
app.add_typer(profiles.app, name="profile")
clusters.app.command("profiles")(profiles.of_cluster)
app.add_typer(claims.app, name="claim")
app.add_typer(disruption.app, name="disruption")
app.add_typer(node_providers.prices, name="price")
app.command()(apply.apply)
app.command()(placements.plan)
app.command()(simulations.simulate)
app.command()(people.login)
app.command()(people.token)


@app.callback()
def root(
    run: typer.Context,
    url: Annotated[
        str | None, typer.Option(help="The API; default STOCKYARD_URL, else that of the last login.")
    ] = None,
    tenant: Annotated[
        str | None,
        typer.Option(help="Whom you act for, with the platform's role; `_platform` is the platform itself."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say when a call is repeated.")] = False,
) -> None:
    """Build the run's context."""
    context = run.obj if isinstance(run.obj, Context) else Context()
    context.url, context.tenant = url or context.url, tenant or context.tenant
    run.obj = context

    def repeated(details: stamina.instrumentation.RetryDetails) -> None:
        if verbose:
            context.say(f"Trying again in {details.wait_for:.1f} s: {details.caused_by}", "dim")

    # in place of stamina's own hook, which would log to stderr
    stamina.instrumentation.set_on_retry_hooks([repeated])


@app.command()
def version(output: Output = Form.TABLE) -> None:
    """Show the version of this command."""
    if output in {Form.JSON, Form.YAML}:
        write_document(output, {"name": "stockyard-client", "version": VERSION})
    else:
        typer.echo(f"stockyard {VERSION}")


def main() -> None:
    """The console script."""
    app(prog_name="stockyard")
