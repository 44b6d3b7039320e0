"""Clients that prove themselves by a token of another issuer, as Keycloak's federated client authentication has it.

The realm trusts an issuer under an alias. A client with the authenticator ``federated-jwt`` names that alias and the
``sub`` of its tokens there; a token has to be for the realm alone, and proves a client once.
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
    used_ids: set[str] = field(default_factory=set)
    """Ids of tokens that have proven a client."""

    def client_of(self, form: Mapping[str, str], realm: str, clients: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """The client that the assertion of a form proves; refused as Keycloak does where it proves none."""
        trusted, claims = self._proven(form)
        for client in clients:
            attributes = client.get("attributes") or {}
            is_federated = client.get("clientAuthenticatorType") == AUTHENTICATOR and client["enabled"]
            proof = attributes.get(ALIAS), attributes.get(SUBJECT)
            if is_federated and proof == (trusted.alias, claims.get("sub")):
                if "client_id" in form:
                    raise _bad("client_id parameter does not match sub claim")
                self._check(claims, realm)
                return client
        raise _refusal()

    def _proven(self, form: Mapping[str, str]) -> tuple[TrustedIssuer, dict[str, Any]]:
        """The issuer of the assertion, and what it says."""
        token = form.get("client_assertion", "")
        issuer = _claims(token).get("iss")
        trusted = next((each for each in self.issuers if each.issuer == issuer), None)
        claims = trusted.verified(token) if trusted else None
        if trusted is None or claims is None or form.get("client_assertion_type") != ASSERTION:
            raise _refusal()
        return trusted, claims

    def _check(self, claims: Mapping[str, Any], realm: str) -> None:
        """Whether the token is for this realm, alive, and shown for the first time."""
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if realm not in audiences:
            raise _bad("Invalid token audience")
        if len(audiences) > 1:
            raise _bad("Multiple audiences not allowed")
        if "exp" not in claims:
            raise _bad("Token exp claim is required")
        if float(claims["exp"]) <= time.time():
            raise _bad("Token is not active")
        if "jti" not in claims:
            raise _bad("Token jti claim is required")
        if claims["jti"] in self.used_ids:
            raise _bad("Token reuse detected")
        self.used_ids.add(claims["jti"])


def _bad(text: str) -> Exception:
    return oauth_refusal(400, "invalid_client", text)


def _refusal() -> Exception:
    return oauth_refusal(401, "invalid_client", "Invalid client or Invalid client credentials")


def _claims(token: str) -> dict[str, Any]:
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}
