"""Identity of a caller: the claims of the token that the gateway has checked, by the rules of the API.

The gateway hands nested claims on as flattened text, so the payload of the same ``Authorization`` header is decoded
here; only when the gateway's authorizer has put its claims beside it, and only when both speak of the same token.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from enum import Flag
from typing import Any

from stockyard.domain.platform import PLATFORM
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.patterns import pattern
from stockyard.domain.values.rights import of_person
from stockyard.errors import Forbidden, Unauthorized

TENANT_HEADER = "x-stockyard-tenant"
_TENANT = pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_SHARED_CLAIMS = ("iss", "sub", "jti", "azp", "client_id")
_ORGANIZATION_ID = pattern(r"[A-Za-z0-9-]{1,64}")
_UNPRINTABLE = pattern(r"[^\x20-\x7e]")


class Roles(Flag):
    """The realm roles of the product."""

    NONE = 0
    VIEWER = 1
    OPERATOR = 2
    ADMIN = 4
    PLATFORM = 8
    ADMINISTRATORS = 12
    """Who may manage accounts and providers."""
    CHANGERS = 14
    """Who may change clusters and claims."""
    READERS = 15
    """All that may read."""


ROLE_NAMES: Mapping[str, Roles] = {
    "stockyard-viewer": Roles.VIEWER,
    "stockyard-operator": Roles.OPERATOR,
    "stockyard-admin": Roles.ADMIN,
    "stockyard-platform": Roles.PLATFORM,
}


@dataclass(frozen=True, slots=True)
class Caller:
    """Caller for a tenant, or for the platform itself. ``client_id`` is the token's client (``azp``)."""

    tenant: str
    actor: str
    roles: Roles
    client_id: str | None = None
    organization_id: str = ""
    """The realm's id of the tenant's organization, where the token says it; never of a tenant that a header names."""

    @property
    def machine(self) -> bool:
        """Whether this may be a cluster's own client: it has no role of ours, only a client."""
        return not self.roles and self.client_id is not None

    @property
    def rights(self) -> str:
        """With whose rights packs are applied that the caller chooses."""
        return of_person(admin=bool(self.roles & Roles.ADMINISTRATORS))


ANONYMOUS = Caller(tenant="", actor="anonymous", roles=Roles.NONE)


def caller_of(event: Mapping[str, Any]) -> Caller:
    """The caller of an HTTP API event. ``Unauthorized`` without a checked token, ``Forbidden`` without a tenant."""
    claims = claims_of(event)
    roles = _roles(claims)
    client = claims.get("azp") or claims.get("client_id")
    client_id = client if isinstance(client, str) and client else None
    tenant = header(event, TENANT_HEADER)
    organizations = _organizations(claims.get("organization"))
    if tenant is None:
        sole = _sole_tenant(organizations, roles)
        organization_id = _organization_id(claims.get("organization"), sole)
        return Caller(sole, _actor(claims, client_id, roles), roles, client_id, organization_id)
    if Roles.PLATFORM not in roles:
        raise Forbidden("Only the role stockyard-platform may name a tenant.")
    if tenant != PLATFORM and not _TENANT.fullmatch(tenant):
        raise Forbidden("X-Stockyard-Tenant does not name a tenant.")
    # in a foreign tenant, and for the platform itself, only that role counts: being an operator at home gives no more
    effective = roles if organizations == [tenant] != [PLATFORM] else Roles.PLATFORM
    return Caller(tenant, _actor(claims, client_id, roles), effective, client_id)


def claims_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """The claims of the token that the gateway has checked, nested as they were signed."""
    authorizer = (event.get("requestContext") or {}).get("authorizer") or {}
    checked = authorizer.get("jwt")
    if not isinstance(checked, Mapping):
        raise Unauthorized("A valid bearer token is needed.")
    claims = _payload(header(event, "authorization") or "")
    flat = checked.get("claims") or {}
    for name in _SHARED_CLAIMS:
        signed = claims.get(name)
        if name in flat and signed is not None and str(signed) != str(flat[name]):
            raise Unauthorized("The token is not the one that was checked.")
    return claims


def header(event: Mapping[str, Any], name: str) -> str | None:
    """A header field of the request, by its lower-case name. None when absent."""
    for key, value in (event.get("headers") or {}).items():
        if key.lower() == name:
            return str(value)
    return None


def credential_of(event: Mapping[str, Any]) -> str | None:
    """The bearer token, or the password of Basic, that a request has; None for none that can be read."""
    scheme, _, credential = (header(event, "authorization") or "").strip().partition(" ")
    if scheme.lower() != "basic":
        return credential.strip() or None if scheme.lower() == "bearer" else None
    try:
        _, _, password = base64.b64decode(credential, validate=True).decode().partition(":")
    except ValueError:
        return None
    return password or None


def _payload(authorization: str) -> dict[str, Any]:
    scheme, _, credentials = authorization.strip().partition(" ")
    token = credentials.strip() if scheme.lower() == "bearer" else scheme
    parts = token.split(".")
    try:
        decoded = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (IndexError, ValueError, RecursionError):
        decoded = None
    if len(parts) != 3 or not isinstance(decoded, dict):
        raise Unauthorized("The bearer token cannot be read.")
    return decoded


def _roles(claims: Mapping[str, Any]) -> Roles:
    access = claims.get("realm_access")
    names = access.get("roles") if isinstance(access, Mapping) else None
    roles = Roles.NONE
    for name in names if isinstance(names, list) else ():
        roles |= ROLE_NAMES.get(name, Roles.NONE) if isinstance(name, str) else Roles.NONE
    return roles


def _organizations(claim: Any) -> list[str]:
    """A map of alias to object, a list, or a string: each names organizations."""
    names = [claim] if isinstance(claim, str) else claim if isinstance(claim, (Mapping, list)) else ()
    return [name if isinstance(name, str) else "" for name in names]


def _organization_id(claim: Any, tenant: str) -> str:
    """``{tenant: {"id": ...}}`` is how Keycloak says it, when its mapper is to."""
    details = claim.get(tenant) if isinstance(claim, Mapping) else None
    value = details.get("id") if isinstance(details, Mapping) else None
    return value if isinstance(value, str) and _ORGANIZATION_ID.fullmatch(value) else ""


def _sole_tenant(organizations: list[str], roles: Roles) -> str:
    if not organizations and Roles.PLATFORM in roles:
        raise Forbidden("Name the tenant by the header X-Stockyard-Tenant.")
    if len(organizations) != 1:
        raise Forbidden("The token must name exactly one organization.")
    if not _TENANT.fullmatch(organizations[0]):
        raise Forbidden("The token's organization cannot be a tenant.")
    return organizations[0]


def _actor(claims: Mapping[str, Any], client_id: str | None, roles: Roles) -> str:
    name = claims.get("preferred_username") or claims.get("sub")
    actor = f"user:{name}" if isinstance(name, str) and (roles or client_id is None) else f"client:{client_id}"
    return _UNPRINTABLE.sub("?", actor)[:200]
