"""What the command line can say of the token that an API has refused: it reads what the token says of itself."""

from __future__ import annotations

from datetime import UTC, datetime

from stockyard_client.cli.context import Context
from stockyard_client.errors import StockyardClientError
from stockyard_client.sessions import ends_at


def refused_token(context: Context) -> str:
    """Why the API may have refused the token that was sent: none, no token by its form, one that has ended, or one that
    another realm has made. Nothing is verified, that is the API's part."""
    name = "STOCKYARD_TOKEN" if context.environment.get("STOCKYARD_TOKEN") else "The token of the login"
    try:
        token = context.token(context.api_url())
    except StockyardClientError:
        token = None
    if not token:
        return "No token was sent."
    end = ends_at(token)
    if end is None:
        return f"{name} is not a JSON Web Token."
    if end <= context.now():
        return f"{name} expired at {datetime.fromtimestamp(end, UTC):%Y-%m-%dT%H:%M:%SZ}."
    return f"{name} has not expired: it is not of this API's realm, or not for this API."
