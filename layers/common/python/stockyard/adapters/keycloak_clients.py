"""Form of our clients in Keycloak: representations, attributes, protocol mappers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.domain.values import ids as domain_ids
from stockyard.ports import IdentityClient

OWNER = "stockyard.cluster_id"
"""The attribute that says which cluster a client belongs to."""
INSTALLATION = "stockyard.installation"
"""The attribute that says which installation made a client: stages may share a realm, and do not know each other."""
DEVICE_FLOW = "oauth2.device.authorization.grant.enabled"
SERVICE = "stockyard.service"
"""The attribute of Stockyard's own service client. It has no owner, so that the sweep never sees it."""
SERVICE_CLIENT = "stockyard-service"


def cluster_client(
    client_id: str, *, installation: str, owner: str, tenant: str, secret: str, audience: str
) -> dict[str, Any]:
    """The representation of a cluster's client: a service account whose tokens name the tenant and are for us."""
    mappers = [
        _mapper(
            "organization",
            "oidc-hardcoded-claim-mapper",
            {"claim.name": "organization", "claim.value": json.dumps({tenant: {}}), "jsonType.label": "JSON"},
        ),
        _mapper("audience", "oidc-audience-mapper", {"included.custom.audience": audience}),
    ]
    return confidential(client_id, secret, {OWNER: owner, INSTALLATION: installation}, mappers)


def login_client(client_id: str, *, installation: str, owner: str) -> dict[str, Any]:
    """The representation of the client that people log in to a cluster with, by the device flow: it keeps no secret.

    An ID token is for the client that asked for it, so no other cluster takes it. Its access token is for nothing.
    """
    return {
        "clientId": domain_ids.login_client(client_id),
        "name": f"Kubernetes cluster {client_id}",
        "protocol": "openid-connect",
        "enabled": True,
        "publicClient": True,
        "serviceAccountsEnabled": False,
        "standardFlowEnabled": False,
        "implicitFlowEnabled": False,
        "directAccessGrantsEnabled": False,
        "fullScopeAllowed": False,
        "attributes": {OWNER: owner, INSTALLATION: installation, DEVICE_FLOW: "true"},
    }


def confidential(
    client_id: str, secret: str, marks: Mapping[str, str], mappers: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """A client that only ever gets tokens for itself, with a secret. ``marks`` are its attributes."""
    return {
        "clientId": client_id,
        "secret": secret,
        "protocol": "openid-connect",
        "enabled": True,
        "publicClient": False,
        "clientAuthenticatorType": "client-secret",
        "serviceAccountsEnabled": True,
        "standardFlowEnabled": False,
        "implicitFlowEnabled": False,
        "directAccessGrantsEnabled": False,
        # Without this the tokens would carry every role the service account has, now and later.
        "fullScopeAllowed": False,
        "attributes": dict(marks),
        "protocolMappers": list(mappers),
    }


def _mapper(name: str, kind: str, config: Mapping[str, str]) -> dict[str, Any]:
    token_claims = {
        "access.token.claim": "true",
        "introspection.token.claim": "true",
        "id.token.claim": "false",
        "userinfo.token.claim": "false",
    }
    return {"name": name, "protocol": "openid-connect", "protocolMapper": kind, "config": {**config, **token_claims}}


def attributes(client: Mapping[str, Any]) -> Mapping[str, str]:
    """The attributes of a client as Keycloak shows it."""
    return client.get("attributes") or {}


def owner_of(client: Mapping[str, Any], installation: str) -> str:
    """The cluster that a client belongs to; empty when this installation did not make it."""
    values = attributes(client)
    return values.get(OWNER, "") if values.get(INSTALLATION) == installation else ""


def view(client: Mapping[str, Any], installation: str) -> IdentityClient:
    """Part of a client that the port shows: never its secret."""
    return IdentityClient(str(client["id"]), str(client["clientId"]), owner_of(client, installation))
