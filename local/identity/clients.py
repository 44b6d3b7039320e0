"""Fields that Keycloak gives to a client that is made without them."""

from __future__ import annotations

from typing import Any

DEFAULTS: dict[str, Any] = {
    "surrogateAuthRequired": False,
    "enabled": True,
    "clientAuthenticatorType": "client-secret",
    "redirectUris": [],
    "webOrigins": [],
    "bearerOnly": False,
    "consentRequired": False,
    "standardFlowEnabled": True,
    "implicitFlowEnabled": False,
    "directAccessGrantsEnabled": False,
    "serviceAccountsEnabled": False,
    "publicClient": False,
    "protocol": "openid-connect",
    "fullScopeAllowed": True,
}
