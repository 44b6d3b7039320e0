"""Clients that prove themselves by a token of another issuer, as Keycloak's federated client authentication has it.

The realm trusts an issuer under an alias. A client with the authenticator ``federated-jwt`` names that alias and the
``sub`` of its tokens there; a token has to be for the realm alone.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from local.identity.refusals import oauth_refusal

ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
AUTHENTICATOR, ALIAS, SUBJECT = "federated-jwt", "jwt.credential.issuer", "jwt.credential.sub"
MOST_SECONDS = 3600
"""How long a token may live at most that proves a client."""


@dataclass(frozen=True, slots=True)
class TrustedIssuer:
    """Another issuer. ``verified`` gives the claims of a token that its keys have signed, None of any other."""

    alias: str
    issuer: str
    verified: Callable[[str], dict[str, Any] | None]


@dataclass(slots=True)
class Federation:
    """Issuers that the realm trusts to prove its clients."""

    issuers: list[TrustedIssuer] = field(default_factory=list)

    def client_of(self, form: Mapping[str, str], realm: str, clients: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """The client that the assertion of a form proves; refused as Keycloak does where it proves none."""
        trusted, subject = self._proven(form, realm)
        for client in clients:
            attributes = client.get("attributes") or {}
            is_federated = client.get("clientAuthenticatorType") == AUTHENTICATOR and client["enabled"]
            is_named = form.get("client_id") in (None, client["clientId"])
            proof = attributes.get(ALIAS), attributes.get(SUBJECT)
            if is_federated and is_named and proof == (trusted.alias, subject):
                return client
        raise _refusal()

    def _proven(self, form: Mapping[str, str], realm: str) -> tuple[TrustedIssuer, str]:
        """The issuer of the assertion, and whom it is about."""
        token = form.get("client_assertion", "")
        issuer = _claims(token).get("iss")
        trusted = next((each for each in self.issuers if each.issuer == issuer), None)
        claims = trusted.verified(token) if trusted else None
        if trusted is None or claims is None or form.get("client_assertion_type") != ASSERTION:
            raise _refusal()
        now, subject = time.time(), claims.get("sub")
        is_alive = now < float(claims.get("exp", 0)) < now + MOST_SECONDS
        if claims.get("aud") not in (realm, [realm]) or not is_alive or not isinstance(subject, str):
            raise _refusal()
        return trusted, subject


def _refusal() -> Exception:
    return oauth_refusal(401, "invalid_client", "Invalid client or Invalid client credentials")


def _claims(token: str) -> dict[str, Any]:
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}
