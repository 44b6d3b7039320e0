"""Logins of people by a browser: the authorization code flow with PKCE (RFC 7636), and sessions. No HTTP here."""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from local.identity.refusals import Refused, oauth_refusal

CONSOLE_CLIENT = "stockyard-console"
CODE_SECONDS = 60
SESSION_SECONDS = 36_000
_PKCE = "pkce.code.challenge.method"


@dataclass(frozen=True, slots=True)
class Request:
    """A valid request of the authorization endpoint."""

    client_id: str
    redirect_uri: str
    scope: str
    state: str | None
    challenge: str | None
    silent: bool
    """Whether no page may be shown (``prompt=none``)."""

    def answer(self, **parameters: str) -> str:
        """The address that the browser is sent back to."""
        named = {**({"state": self.state} if self.state is not None else {}), **parameters}
        return f"{self.redirect_uri}{'&' if '?' in self.redirect_uri else '?'}{urlencode(named)}"


@dataclass(frozen=True, slots=True)
class _Code:
    request: Request
    person: str
    expires_at: float


@dataclass(slots=True)
class Codes:
    """Codes that wait to be exchanged, and the sessions of browsers, both by their secret text."""

    _codes: dict[str, _Code] = field(default_factory=dict)
    _sessions: dict[str, tuple[str, float]] = field(default_factory=dict)

    def issue(self, request: Request, person: str, session: str, issuer: str) -> str:
        """A code for a person who has logged in: the address that the browser is sent back to."""
        code = secrets.token_urlsafe(32)
        self._codes[code] = _Code(request, person, time.time() + CODE_SECONDS)
        return request.answer(session_state=session[:16], iss=issuer, code=code)

    def redeem(self, client_id: str, form: Mapping[str, str]) -> tuple[str, str]:
        """Person and scope of a code, which is good for one exchange. Raises ``Refused``."""
        code = self._codes.pop(form.get("code", ""), None)
        if code is None or code.request.client_id != client_id or code.expires_at <= time.time():
            raise oauth_refusal(400, "invalid_grant", "Code not valid")
        if form.get("redirect_uri") != code.request.redirect_uri:
            raise oauth_refusal(400, "invalid_grant", "Incorrect redirect_uri")
        if code.request.challenge is not None:
            verifier = form.get("code_verifier", "")
            if not verifier:
                raise oauth_refusal(400, "invalid_grant", "PKCE code verifier not specified")
            digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
            if not secrets.compare_digest(digest, code.request.challenge):
                raise oauth_refusal(400, "invalid_grant", "PKCE verification failed: Code mismatch")
        return code.person, code.request.scope

    def begin(self, person: str) -> str:
        """A new session of a person's browser."""
        session = secrets.token_urlsafe(32)
        self._sessions[session] = person, time.time() + SESSION_SECONDS
        return session

    def person(self, session: str) -> str | None:
        """Name of the person whose session it is, while it lasts."""
        person, ends = self._sessions.get(session, (None, 0.0))
        return person if ends > time.time() else None

    def end(self, session: str) -> str | None:
        """End a session; the name of its person."""
        return self._sessions.pop(session, (None, 0.0))[0]


def console_client(url: str, audience: str) -> dict[str, Any]:
    """The public client of the console below ``url``: a code with PKCE, answered there alone."""
    config = {"included.custom.audience": audience, "access.token.claim": "true"}
    mapper = {
        "name": "audience",
        "protocol": "openid-connect",
        "protocolMapper": "oidc-audience-mapper",
        "config": config,
    }
    return {
        "clientId": CONSOLE_CLIENT,
        "publicClient": True,
        "standardFlowEnabled": True,
        "directAccessGrantsEnabled": False,
        "redirectUris": [f"{url}/console/*"],
        "webOrigins": ["+"],
        "attributes": {_PKCE: "S256", "post.logout.redirect.uris": "+"},
        "protocolMappers": [mapper],
    }


def allowed(client: Mapping[str, Any], address: str) -> bool:
    """Whether the client may be answered at this address: one of its own, or below one that ends with ``*``."""
    patterns = (str(each) for each in client.get("redirectUris", ()))
    return any(address.startswith(each[:-1]) if each.endswith("*") else address == each for each in patterns)


def origins(client: Mapping[str, Any]) -> set[str]:
    """Origins whose pages may read the answers of the token endpoint; ``+`` stands for those of the addresses."""
    named = set(map(str, client.get("webOrigins", ())))
    if "+" in named:
        named |= {"/".join(str(each).split("/")[:3]) for each in client.get("redirectUris", ())}
    return named - {"+"}


def read_request(client: Mapping[str, Any] | None, query: Mapping[str, str], scope: str) -> Request:
    """The request in a query. Raises ``Refused`` where the browser must not be sent back, ``SentBack`` else."""
    if client is None or not client["enabled"]:
        raise Refused(400, {"error": "Client not found."})
    if not client["standardFlowEnabled"]:
        raise Refused(400, {"error": "Client is not allowed to initiate browser login with given response_type."})
    address = query.get("redirect_uri", "")
    if not allowed(client, address):
        raise Refused(400, {"error": "Invalid parameter: redirect_uri"})
    challenge, silent = query.get("code_challenge"), query.get("prompt") == "none"
    request = Request(str(client["clientId"]), address, scope, query.get("state"), challenge, silent)
    if query.get("response_type") != "code":
        raise SentBack(request.answer(error="invalid_request", error_description="Missing parameter: response_type"))
    method, needed = query.get("code_challenge_method"), client.get("attributes", {}).get(_PKCE)
    if needed and method is None:
        text = "Missing parameter: code_challenge_method"
        raise SentBack(request.answer(error="invalid_request", error_description=text))
    if needed and method != needed:
        text = "Invalid parameter: code challenge method is not matching the configured one"
        raise SentBack(request.answer(error="invalid_request", error_description=text))
    if needed and not challenge:
        text = "Missing parameter: code_challenge"
        raise SentBack(request.answer(error="invalid_request", error_description=text))
    return request


class SentBack(Exception):
    """A refusal that the client itself is told, by the address that the browser is sent to."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address
