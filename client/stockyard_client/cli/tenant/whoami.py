"""``stockyard whoami``: what the token says, and until when it holds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.failures import NOT_ALLOWED
from stockyard_client.cli.output.output import Form, Output, write_document
from stockyard_client.cli.visible import echo
from stockyard_client.errors import LoginFailed
from stockyard_client.sessions import claims_of

_PREFIX = "stockyard-"


def whoami(run: typer.Context, output: Output = Form.TABLE) -> None:
    """Show who you are to the API, and until when. It is read from the token, and no secret is shown."""
    context = contexts.of(run)
    url = context.api_url()
    token = context.token(url)
    credential = context.held_token()
    if token is None or credential is None:
        raise LoginFailed("nobody is logged in: log in with `stockyard login`, or set STOCKYARD_TOKEN")
    claims = claims_of(token)
    if not claims:
        raise LoginFailed(f"{credential.source} is no token of an issuer (a JWT), so it does not say who you are")
    identity = identity_of(claims, context.means_tenant)
    record = {"api": url, **identity, "token": credential.source}
    if output in {Form.JSON, Form.YAML}:
        write_document(output, record)
    elif output is Form.NAME:
        echo(record["user"])
    else:
        _draw(context, record)
    if identity["expires_at"] and claims["exp"] <= context.now():
        context.say("The token has expired: the API refuses it.", "yellow")
        raise typer.Exit(NOT_ALLOWED)


def identity_of(claims: dict[str, Any], tenant: str) -> dict[str, Any]:
    """Identity by the claims, in the words of the product: user, tenant, roles, client, issuer, end."""
    realm = claims.get("realm_access")
    names = realm.get("roles") if isinstance(realm, dict) else None
    roles = [str(name).removeprefix(_PREFIX) for name in names or () if str(name).startswith(_PREFIX)]
    end = claims.get("exp")
    return {
        "user": str(claims.get("preferred_username") or claims.get("email") or claims.get("sub") or ""),
        "tenant": tenant or ", ".join(_organizations(claims.get("organization"))),
        "roles": sorted(roles),
        "client": str(claims.get("azp") or claims.get("client_id") or ""),
        "issuer": str(claims.get("iss") or ""),
        "expires_at": _text(end) if isinstance(end, int | float) else None,
    }


def _organizations(claim: Any) -> list[str]:
    """The names of organizations: a map, a list, or one text."""
    names = [claim] if isinstance(claim, str) else claim if isinstance(claim, dict | list) else ()
    return [str(name) for name in names]


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _draw(context: contexts.Context, record: dict[str, Any]) -> None:
    rows = {
        "API": record["api"],
        "User": record["user"],
        "Tenant": record["tenant"] or "none",
        "Roles": ", ".join(record["roles"]) or "none",
        "Client": record["client"],
        "Issuer": record["issuer"],
        "Token": f"{record['token']}, until {record['expires_at'] or 'it is revoked'}",
    }
    width = max(len(name) for name in rows) + 2
    for name, value in rows.items():
        context.out.print(f"{name:<{width}}{value}", soft_wrap=True)
