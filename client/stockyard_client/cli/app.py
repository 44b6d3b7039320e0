"""The root command: options of every call, and the commands below it."""

from __future__ import annotations

import gc
import io
import sys
from typing import Annotated, Any

import typer

from stockyard_client.cli import lazy
from stockyard_client.cli.context import Context
from stockyard_client.cli.failures import FailuresAsText
from stockyard_client.cli.lazy import Command

_HELP = """Kubernetes clusters from Stockyard.

Environment: STOCKYARD_URL, STOCKYARD_TOKEN, STOCKYARD_ISSUER, STOCKYARD_TENANT, NO_COLOR."""
_EPILOG = (
    "Exit codes: 0 done, 1 failed, 2 usage or input, 3 not found, 4 not allowed, 5 conflict, "
    "6 quota or capacity, 124 timed out, 130 interrupted."
)

COMMANDS = {
    "account": Command("tenant.accounts", "app", "Cloud accounts."),
    "site": Command("tenant.sites", "app", "Places that only a connector there reaches."),
    "cluster": Command("clusters.clusters", "app", "Kubernetes clusters."),
    "eks": Command("clusters.eks", "app", "Clusters on EKS."),
    "operation": Command("operations.operations", "app", "Long-running changes."),
    "provider": Command("nodes.node_providers", "app", "Node providers."),
    "type": Command("nodes.node_providers", "types", "Node types."),
    "os-image": Command("nodes.os_images", "app", "Images of operating systems."),
    "pool": Command("pools.pools", "app", "Pools of a cluster."),
    "profile": Command("clusters.profiles", "app", "Cluster profiles."),
    "claim": Command("nodes.claims", "app", "Node claims."),
    "disruption": Command("pools.disruption", "app", "Nodes that leave: empty, out of date, too old or too dear."),
    "price": Command("nodes.node_providers", "prices", "Prices."),
    "events": Command("operations.events", "events", "List what happened, the newest last."),
    "logs": Command("operations.logs", "logs", "Show what an operation did, with times."),
    "cost": Command("tenant.costs", "cost", "Show what is paid now, and this month so far."),
    "metrics": Command("tenant.metrics", "metrics", "Print the numbers that Prometheus scrapes, as text."),
    "budget": Command("tenant.budgets", "app", "What a month may cost."),
    "quota": Command("tenant.tenancy", "quotas", "Limits of a tenant."),
    "audit": Command("tenant.audit", "app", "Who did what."),
    "environment": Command("tenant.tenancy", "environments", "What providers set up for clusters."),
    "event-account": Command("tenant.tenancy", "accounts", "AWS accounts whose events are your requests."),
    "apply": Command("manifests.apply", "apply", "Make what manifests ask for, and change what differs."),
    "diff": Command("manifests.diff", "diff", "Show what apply would change, field by field."),
    "delete": Command("manifests.delete", "delete", "Delete what files name, in reverse order."),
    "set": Command("manifests.members", "app", "Sets of manifests: what was applied together."),
    "plan": Command("pools.placements", "plan", "Say which nodes pods would need, and what they cost."),
    "simulate": Command("pools.simulations", "simulate", "Replay a history of pods against policies."),
    "login": Command("tenant.people", "login", "Log in with a browser."),
    "logout": Command("tenant.people", "logout", "Forget the login, and end it at the issuer."),
    "whoami": Command("tenant.whoami", "whoami", "Show who you are to the API, and until when."),
    "health": Command("version", "health", "Say whether the API answers."),
    "token": Command("tenant.people", "token", "Print a token for kubectl, which calls this by itself."),
    "version": Command("version", "version", "Show the version of this command."),
}
"""What the root has. Each command is imported when it is called."""


class Root(FailuresAsText):
    """The root group, which imports a command when it is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = lazy.Commands(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  (the signature is Click's)
        """Writes the table of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(lazy.Commands(COMMANDS).lines())


app = typer.Typer(
    name="stockyard",
    cls=Root,
    no_args_is_help=True,
    # plain help and no tracebacks with local variables: those would show tokens
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=_HELP,
    epilog=_EPILOG,
)


@app.callback()
def root(
    run: typer.Context,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="The API; default STOCKYARD_URL, else that of the last login.")
    ] = None,
    tenant: Annotated[
        str | None,
        typer.Option(
            metavar="TENANT", help="Whom you act for, with the platform's role; `_platform` is the platform itself."
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say when a call is repeated.")] = False,
) -> None:
    """Build the run's context."""
    context = run.obj if isinstance(run.obj, Context) else Context()
    context.url, context.verbose = url or context.url, verbose
    context.tenant = context.tenant if tenant is None else tenant
    run.obj = context


_COLLECT_AFTER = 50_000
"""New objects after which memory is looked through; Python's own 700 would do so dozens of times during imports."""


def _start_fast() -> None:
    """Leaves out work that no command needs: a short one takes about a tenth less time."""
    gc.set_threshold(_COLLECT_AFTER)
    # httpx brings a command line of its own, which imports click, pygments and progress bars where those are installed;
    # a module that is None cannot be imported, and httpx goes on without
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]


def main() -> None:
    """The console script."""
    _start_fast()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a character that the terminal's encoding has not is no reason to end in the middle
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="stockyard")
