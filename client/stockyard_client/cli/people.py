"""``stockyard login`` and ``stockyard token``: who is calling."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.failures import BadInput
from stockyard_client.sessions import DEFAULT_CLIENT, DEFAULT_SCOPE, DeviceLogin, Invitation, ends_at


def login(
    run: typer.Context,
    issuer: Annotated[str | None, typer.Option(help="The OIDC issuer; default STOCKYARD_ISSUER.")] = None,
    client_id: Annotated[str, typer.Option(help="The issuer's public client.")] = DEFAULT_CLIENT,
    scope: Annotated[str, typer.Option(help="Scopes to ask for.")] = DEFAULT_SCOPE,
) -> None:
    """Log in with a browser, here or on another device; the session is kept for this API."""
    context = contexts.of(run)
    url = context.api_url()
    found = issuer or context.environment.get("STOCKYARD_ISSUER")
    if not found:
        kept = context.store.load(url)
        found = kept.issuer if kept else None
    if not found:
        raise BadInput("no issuer is known: give --issuer or set STOCKYARD_ISSUER")
    flow = DeviceLogin(
        found, client_id=client_id, scope=scope, transport=context.transport, sleep=context.sleep, now=context.now
    )

    def invite(invitation: Invitation) -> None:
        context.say(f"Open {invitation.uri} and confirm the code {invitation.user_code}.", "bold")

    context.store.save(flow.run(url, invite))
    context.say(f"Logged in to {url}.", "green")


def token(run: typer.Context) -> None:
    """Print an ExecCredential for kubectl, which calls this by itself. The output is a secret."""
    context = contexts.of(run)
    found = context.cluster_token(context.api_url())
    status: dict[str, Any] = {"token": found}
    if (end := ends_at(found)) is not None:
        status["expirationTimestamp"] = datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    typer.echo(json.dumps(credential))
