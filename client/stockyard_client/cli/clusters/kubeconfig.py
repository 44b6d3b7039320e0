"""``stockyard cluster kubeconfig``: the way of kubectl into a cluster."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.input.completion import cluster_names
from stockyard_client.cli.visible import echo
from stockyard_client.errors import UnexpectedAnswer

Name = Annotated[str, typer.Argument(metavar="CLUSTER", help="Name or id.", autocompletion=cluster_names)]
PROGRAM = "stockyard"
_SIMULATED = (
    "This cluster is simulated: kubectl works, but pods run in name only. `make serve KUBERNETES=1`"
    " gives clusters real control planes."
)


def kubeconfig(
    run: typer.Context,
    cluster: Name,
    file: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Default: the first of $KUBECONFIG, else ~/.kube/config.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--context", metavar="NAME", help="What the context is called. Default: the cluster.")
    ] = None,
    use: Annotated[bool, typer.Option("--use", help="Make it the current context of kubectl.")] = False,
    stdout: Annotated[bool, typer.Option("--print", help="Print it; write no file.")] = False,
    static: Annotated[bool, typer.Option(help="Stored credentials for admins, not the user's own token.")] = False,
    secret: Annotated[bool, typer.Option(help="Print a Secret with it and a token of now; write no file.")] = False,
) -> None:
    """Put a cluster into your kubeconfig. Other entries stay, and the current context unless --use is given."""
    from stockyard_client import kubeconfigs

    context = contexts.of(run)
    if secret:
        if static or file:
            raise BadInput("--secret goes without --static and --file")
        with context.client() as client:
            echo(kubeconfigs.dump(client.clusters.kubeconfig_secret(cluster)).rstrip("\n"))
        return
    with context.client() as client:
        answer = client.clusters.kubeconfig(cluster, static=static)
        config = kubeconfigs.document(answer)
        if static:
            kubeconfigs.check_static(config)
        entry = name or (cluster if not cluster.startswith("clu_") else client.clusters.get(cluster).name)
        simulated = client.simulates_kubernetes
    config = kubeconfigs.for_person(config, entry, context.api_url(), context.means_tenant, command=program())
    if stdout:
        echo(kubeconfigs.dump(config).rstrip("\n"))
    else:
        path = file or kubeconfigs.default_path(context.environment)
        current = kubeconfigs.write(path, config, use=use)
        _say_how(context, entry, path, current=current)
        if not static and _lacks_login(context, config):
            context.say(f"Next: stockyard login --cluster {cluster}   # before kubectl asks for a token")
    if simulated:
        context.say(_SIMULATED, "yellow")


def _lacks_login(context: contexts.Context, config: dict[str, Any]) -> bool:
    """Whether kubectl would find no token: people log in to this cluster, and nobody has."""
    from stockyard_client import kubeconfigs
    from stockyard_client.sessions import cluster_session

    if kubeconfigs.asks_api(config) or "STOCKYARD_CLUSTER_TOKEN" in context.environment:
        return False
    try:
        issuer, client_id = kubeconfigs.login(config)
    except UnexpectedAnswer:
        return False
    return context.store.load(cluster_session(issuer, client_id)) is None


def program() -> list[str]:
    """The command by which kubectl calls this program from any directory: an absolute path where there is one.

    A link on PATH stays a link: it outlives an upgrade of what it points to.
    """
    import shutil  # slow to import, and needed here alone

    own = Path(sys.argv[0])
    if own.name.startswith(PROGRAM) and own.is_file():
        on_path = shutil.which(PROGRAM)
        is_same = on_path is not None and os.path.samefile(on_path, own)
        return [os.path.abspath(on_path if on_path and is_same else own)]
    beside = Path(sys.executable).with_name(PROGRAM)
    if beside.is_file():
        return [str(beside)]
    return [sys.executable, "-m", "stockyard_client"]


def _say_how(context: contexts.Context, name: str, path: Path, *, current: str | None) -> None:
    if current == name:
        context.say(f"Context {name} is current in {path}.")
        return
    stays = f" {current} stays the current one." if current else ""
    context.say(f"Context {name} is in {path}.{stays}")
    context.say(f"Use it: kubectl --context {name} get nodes, or for good: kubectl config use-context {name}")
