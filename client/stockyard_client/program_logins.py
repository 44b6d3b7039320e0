"""Tokens of programs: a client of the realm that proves itself by a secret, or by the ID token of a GitHub workflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx

from stockyard_client.errors import LoginFailed
from stockyard_client.sessions import Session, answer_of, reason_of, session_of
from stockyard_client.transport import PAST_PROXIES

SECRET, GITHUB = "secret", "github"
CLIENT_SECRET = "STOCKYARD_CLIENT_SECRET"  # noqa: S105 - the name of a variable
"""The variable with the client's secret; no option takes one, since options are seen by every process."""
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_REQUEST_URL, _REQUEST_TOKEN = "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"


def program_session(
    url: str,
    issuer: str,
    *,
    by: str,
    client_id: str | None,
    scope: str,
    environment: Mapping[str, str],
    now: float,
    transport: httpx.BaseTransport | None = None,
) -> Session:
    """A session for the API at ``url`` of a client of ``issuer`` (RFC 6749, 4.4): ``by`` its ``SECRET``, or by the ID
    token of the ``GITHUB`` workflow that this runs in (RFC 7523, 2.2). Raises ``LoginFailed``."""
    issuer = issuer.rstrip("/")
    with httpx.Client(timeout=30.0, transport=transport, mounts=PAST_PROXIES) as http:
        endpoint = _token_endpoint(http, issuer)
        proof = _github_proof(http, issuer, environment) if by == GITHUB else _secret_proof(environment)
        named = {"client_id": client_id} if client_id else {}
        form = {"grant_type": "client_credentials", "scope": scope, **named, **proof}
        answer = answer_of(http, endpoint, form)
    if "access_token" not in answer:
        raise LoginFailed(reason_of(answer))
    session = session_of(url.rstrip("/"), issuer, client_id or "", endpoint, answer, now)
    return replace(session, refresh_token=None, program=by)


def _token_endpoint(http: httpx.Client, issuer: str) -> str:
    try:
        document: dict[str, Any] = http.get(f"{issuer}/.well-known/openid-configuration").raise_for_status().json()
        if str(document["issuer"]).rstrip("/") != issuer:
            raise LoginFailed("the issuer's document names another issuer")
        return str(document["token_endpoint"])
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        raise LoginFailed(f"no OIDC issuer answers at {issuer}") from None


def _secret_proof(environment: Mapping[str, str]) -> dict[str, str]:
    secret = environment.get(CLIENT_SECRET)
    if not secret:
        raise LoginFailed(f"the client's secret is missing: set {CLIENT_SECRET}")
    return {"client_secret": secret}


def _github_proof(http: httpx.Client, issuer: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The ID token of this workflow for the realm alone: its audience is the issuer."""
    url, token = environment.get(_REQUEST_URL), environment.get(_REQUEST_TOKEN)
    if not url or not token:
        raise LoginFailed("this is no job of GitHub that may have an ID token: it needs `permissions: id-token: write`")
    sign = "&" if "?" in url else "?"
    headers = {"Authorization": f"Bearer {token}"}
    try:
        answer = http.get(f"{url}{sign}audience={quote(issuer, safe='')}", headers=headers).raise_for_status().json()
        return {"client_assertion_type": _ASSERTION, "client_assertion": str(answer["value"])}
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        raise LoginFailed("GitHub gave no ID token for this job") from None
