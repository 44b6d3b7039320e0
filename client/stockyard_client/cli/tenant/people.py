"""``stockyard login``, ``logout`` and ``token``: who is calling."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from stockyard_client import kubeconfigs
from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.input.completion import cluster_names
from stockyard_client.cli.visible import echo
from stockyard_client.program_logins import GITHUB, SECRET
from stockyard_client.sessions import DEFAULT_CLIENT, DEFAULT_SCOPE, cluster_session, ends_at, revoked


def login(
    run: typer.Context,
    issuer: Annotated[str | None, typer.Option(help="The OIDC issuer; default STOCKYARD_ISSUER.")] = None,
    client_id: Annotated[
        str | None, typer.Option(help=f"The issuer's client; of people {DEFAULT_CLIENT}.", show_default=False)
    ] = None,
    client_credentials: Annotated[
        bool,
        typer.Option(
            "--client-credentials",
            help="As a program: the client proves itself by the secret in STOCKYARD_CLIENT_SECRET.",
        ),
    ] = False,
    github: Annotated[
        bool, typer.Option("--github", help="As a job of GitHub Actions, by its ID token; there is no secret.")
    ] = False,
    scope: Annotated[str, typer.Option(help="Scopes to ask for.")] = DEFAULT_SCOPE,
    cluster: Annotated[
        str | None, typer.Option(help="Log in to this cluster, for kubectl.", autocompletion=cluster_names)
    ] = None,
) -> None:
    """Log in with a browser. That may be on another device; the session is kept for this API, or for one cluster.
    Programs log in without a browser, by --client-credentials or --github."""
    context = contexts.of(run)
    url = context.api_url()
    is_program = client_credentials or github
    if cluster:
        if is_program:
            raise BadInput("--cluster is for people: programs ask the API for tokens of clusters")
        with context.client() as client:
            config = kubeconfigs.document(client.clusters.kubeconfig(cluster))
        if kubeconfigs.asks_api(config):
            context.say(f"The cluster {cluster} needs no login of its own: kubectl asks the API for tokens.")
            return
        issuer_of_cluster, client_of_cluster = kubeconfigs.login(config)
        key = cluster_session(issuer_of_cluster, client_of_cluster)
        context.store.renew(context.log_in(key, issuer_of_cluster, client_of_cluster, scope))
        context.say(f"Logged in to the cluster {cluster}.", "green")
        return
    issuer_url = issuer or context.environment.get("STOCKYARD_ISSUER")
    if not issuer_url:
        session = context.store.load(url)
        issuer_url = session.issuer if session else None
    if not issuer_url:
        raise BadInput("no issuer is known: give --issuer or set STOCKYARD_ISSUER")
    if is_program:
        if not github and client_id is None:
            raise BadInput("--client-credentials needs --client-id, the client of the realm that the program is")
        if github and client_id is not None:
            raise BadInput("--client-id is not for --github: the subject of the job's token says which client it is")
        by = GITHUB if github else SECRET
        context.store.save(context.log_in_program(url, issuer_url, by, client_id, scope))
    else:
        context.store.save(context.log_in(url, issuer_url, client_id or DEFAULT_CLIENT, scope))
    context.say(f"Logged in to {url}.", "green")


def logout(
    run: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Of all APIs and clusters, not only of this API.")] = False,
) -> None:
    """Forget the login, and end it at the issuer. A token that is out already holds until its end, minutes later."""
    context = contexts.of(run)
    urls = context.store.urls() if every else [context.api_url()]
    count = 0
    for url in urls:
        session = context.store.load(url)
        if session is None:
            continue
        count += 1
        has_ended = revoked(session, context.transport)
        context.store.forget(url)
        where = "and ended at the issuer" if has_ended else "here; the issuer was not told, so it ends there by itself"
        context.say(f"The login to {url} is forgotten {where}.", "green" if has_ended else "yellow")
    if not count:
        context.say("There was no login to forget.")
    if context.environment.get("STOCKYARD_TOKEN"):
        context.say("STOCKYARD_TOKEN is still set, and wins: unset it.", "yellow")


def token(
    run: typer.Context,
    issuer: Annotated[str, typer.Option(help="The OIDC issuer, as the cluster's kubeconfig has it.")] = "",
    client_id: Annotated[str, typer.Option(help="The cluster's public client, likewise.")] = "",
    cluster: Annotated[str, typer.Option(help="The cluster, where its cloud admits people to it.")] = "",
) -> None:
    """Print a token for kubectl, which calls this by itself. The output is an ExecCredential, and a secret."""
    context = contexts.of(run)
    if cluster:
        if issuer or client_id:
            raise BadInput("--cluster goes without --issuer and --client-id")
        with context.client() as client:
            echo(json.dumps(kubeconfigs.credential(client.clusters.token(cluster))))
        return
    if not (issuer and client_id) and "STOCKYARD_CLUSTER_TOKEN" not in context.environment:
        raise BadInput("give --issuer and --client-id as the cluster's kubeconfig has them")
    id_token = context.cluster_token(issuer, client_id)
    status: dict[str, Any] = {"token": id_token}
    if (end := ends_at(id_token)) is not None:
        status["expirationTimestamp"] = datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    credential = {"apiVersion": kubeconfigs.CREDENTIAL_VERSION, "kind": "ExecCredential", "status": status}
    echo(json.dumps(credential))
