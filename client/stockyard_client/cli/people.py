"""``stockyard login`` and ``stockyard token``: who is calling."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.failures import BadInput
from stockyard_client.sessions import DEFAULT_CLIENT, DEFAULT_SCOPE, DeviceAuthorization, DeviceLogin, ends_at


def login(
    run: typer.Context,
    issuer: Annotated[str | None, typer.Option(help="The OIDC issuer; default STOCKYARD_ISSUER.")] = None,
    client_id: Annotated[str, typer.Option(help="The issuer's public client.")] = DEFAULT_CLIENT,
    scope: Annotated[str, typer.Option(help="Scopes to ask for.")] = DEFAULT_SCOPE,
) -> None:
    """Log in with a browser, here or on another device; the session is kept for this API."""
    context = contexts.of(run)
    url = context.api_url()
    issuer_url = issuer or context.environment.get("STOCKYARD_ISSUER")
    if not issuer_url:
        session = context.store.load(url)
        issuer_url = session.issuer if session else None
    if not issuer_url:
        raise BadInput("no issuer is known: give --issuer or set STOCKYARD_ISSUER")
    flow = DeviceLogin(
        issuer_url, client_id=client_id, scope=scope, transport=context.transport, sleep=context.sleep, now=context.now
    )

    def prompt(authorization: DeviceAuthorization) -> None:
        context.say(f"Open {authorization.uri} and confirm the code {authorization.user_code}.", "bold")

    context.store.save(flow.run(url, prompt))
    context.say(f"Logged in to {url}.", "green")


def token(run: typer.Context) -> None:
    """Print an ExecCredential for kubectl, which calls this by itself. The output is a secret."""
    context = contexts.of(run)
    id_token = context.cluster_token(context.api_url())
    status: dict[str, Any] = {"token": id_token}
    if (end := ends_at(id_token)) is not None:
        status["expirationTimestamp"] = datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    typer.echo(json.dumps(credential))
