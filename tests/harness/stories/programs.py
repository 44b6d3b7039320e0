"""Programs that log in: confidential clients in the realm of a served local cloud."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from local.testing.serving import http

if TYPE_CHECKING:
    from local.testing.serving import Served


def add_program(served: Served, name: str, roles: Sequence[str]) -> str:
    """Make a client of the tenant acme with a service account that has these roles; returns its secret."""
    secret = secrets.token_urlsafe(24)
    client = {
        "clientId": name,
        "secret": secret,
        "protocol": "openid-connect",
        "publicClient": False,
        "serviceAccountsEnabled": True,
        "fullScopeAllowed": False,
        "protocolMappers": [
            _fixed_claim("organization", {"acme": {}}),
            _fixed_claim("realm_access", {"roles": list(roles)}),
            _mapper("audience", "oidc-audience-mapper", {"included.custom.audience": "stockyard"}),
        ],
    }
    admin = served.client_token(*served.identity_admin())
    headers = {"Authorization": f"Bearer {admin}", "Content-Type": "application/json"}
    url = f"{served.issuer.replace('/realms/', '/admin/realms/')}/clients"
    answer = http("POST", url, json.dumps(client).encode(), headers)
    assert answer.status == 201, answer.text
    return secret


def _mapper(name: str, kind: str, config: dict[str, str]) -> dict[str, Any]:
    """A protocol mapper of Keycloak for access tokens."""
    config = {**config, "access.token.claim": "true"}
    return {"name": name, "protocol": "openid-connect", "protocolMapper": kind, "config": config}


def _fixed_claim(name: str, value: Any) -> dict[str, Any]:
    """A claim with one value, as JSON."""
    config = {"claim.name": name, "claim.value": json.dumps(value), "jsonType.label": "JSON"}
    return _mapper(name, "oidc-hardcoded-claim-mapper", config)
