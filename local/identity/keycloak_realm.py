"""Creates what Stockyard needs in a Keycloak realm by the admin API, as ``docs/operations.md`` describes.

Tenants are organizations of the realm, people are their members, and a token names its tenant because the client asks
for the scope ``organization``.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

from local.identity.codes import CONSOLE_CLIENT, console_client
from local.identity.federation import ALIAS, AUTHENTICATOR, SUBJECT
from local.identity.realm import ADMIN_CLIENT, CLI_CLIENT, REALM

Call = Callable[..., Any]
"""(method, path below ``/admin/realms/<realm>``, body) -> answer."""
DAY = 86_400
ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin", "stockyard-platform")


def realm() -> dict[str, Any]:
    """The realm, with organizations; a session, and so a person's token, may last a day."""
    return {"realm": REALM, "enabled": True, "organizationsEnabled": True, "ssoSessionMaxLifespan": DAY}


def set_up(call: Call, *, admin_secret: str, audience: str) -> None:
    """Roles, the admin client of Stockyard (it may manage clients, no more) and the client of the command line."""
    for name in ROLES:
        call("POST", "/roles", {"name": name})
    call("POST", "/clients", _admin(admin_secret))
    admin, management = (_client(call, name) for name in (ADMIN_CLIENT, "realm-management"))
    user = call("GET", f"/clients/{admin}/service-account-user")["id"]
    role = call("GET", f"/clients/{management}/roles/manage-clients")
    call("POST", f"/users/{user}/role-mappings/clients/{management}", [role])
    call("POST", "/clients", _command_line(audience))
    cli, scope = _client(call, CLI_CLIENT), _organization_scope(call)
    mappers = call("GET", f"/client-scopes/{scope}/protocol-mappers/models")
    membership = next(mapper for mapper in mappers if mapper["protocolMapper"] == "oidc-organization-membership-mapper")
    membership["config"]["addOrganizationId"] = "true"
    call("PUT", f"/client-scopes/{scope}/protocol-mappers/models/{membership['id']}", membership)
    call("PUT", f"/clients/{cli}/default-client-scopes/{scope}")


def add_console(call: Call, *, url: str, audience: str) -> None:
    """The public client of the console that is served below ``url``; its tokens name the tenant too."""
    call("POST", "/clients", console_client(url, audience))
    call("PUT", f"/clients/{_client(call, CONSOLE_CLIENT)}/default-client-scopes/{_organization_scope(call)}")


def _organization_scope(call: Call) -> str:
    scopes = call("GET", "/client-scopes")
    return next(str(scope["id"]) for scope in scopes if scope["name"] == "organization")


def add_person(call: Call, name: str, tenant: str, roles: Sequence[str]) -> str:
    """A person of ``tenant`` with these realm roles, both made when they are missing; returns the new password."""
    password, organization = secrets.token_urlsafe(24), _organization(call, tenant)
    person = {
        "username": name,
        "enabled": True,
        "emailVerified": True,
        "email": f"{name}@{tenant}.example",
        "firstName": name,
        "lastName": tenant,
        "credentials": [{"type": "password", "value": password, "temporary": False}],
    }
    call("POST", "/users", person)
    user = call("GET", f"/users?username={name}&exact=true")[0]["id"]
    _admit(call, user, organization, roles)
    return password


def trust(call: Call, alias: str, issuer: str, keys_url: str) -> None:
    """Take tokens of another issuer, whose keys stand at ``keys_url``, as proofs of clients. Nobody logs in there."""
    config = {
        "issuer": issuer,
        "jwksUrl": keys_url,
        "useJwksUrl": "true",
        "validateSignature": "true",
        "supportsClientAssertions": "true",
        **dict.fromkeys(("authorizationUrl", "tokenUrl"), f"{issuer}/none"),
        **dict.fromkeys(("clientId", "clientSecret"), "none"),
    }
    provider = {"alias": alias, "providerId": "oidc", "enabled": True, "linkOnly": True, "hideOnLogin": True}
    call("POST", "/identity-provider/instances", {**provider, "config": config})


def add_program(
    call: Call, name: str, tenant: str, roles: Sequence[str], *, proof: tuple[str, str], audience: str
) -> None:
    """A client of ``tenant`` without a secret. ``proof``: the alias of an issuer, and the subject of its tokens."""
    mapper = {"name": "audience", "protocol": "openid-connect", "protocolMapper": "oidc-audience-mapper"}
    config = {"included.custom.audience": audience, "access.token.claim": "true"}
    client = {
        "clientId": name,
        "publicClient": False,
        "serviceAccountsEnabled": True,
        "standardFlowEnabled": False,
        "clientAuthenticatorType": AUTHENTICATOR,
        "attributes": {ALIAS: proof[0], SUBJECT: proof[1]},
        "protocolMappers": [{**mapper, "config": config}],
    }
    call("POST", "/clients", client)
    user = call("GET", f"/clients/{_client(call, name)}/service-account-user")["id"]
    _admit(call, user, _organization(call, tenant), roles)


def _organization(call: Call, tenant: str) -> str:
    """Id of the organization of a tenant, which is made where it is missing."""
    if not call("GET", f"/organizations?search={tenant}&exact=true"):
        domain = {"name": f"{tenant}.example", "verified": True}
        call("POST", "/organizations", {"name": tenant, "alias": tenant, "domains": [domain]})
    return str(call("GET", f"/organizations?search={tenant}&exact=true")[0]["id"])


def _admit(call: Call, user: str, organization: str, roles: Sequence[str]) -> None:
    call("POST", f"/organizations/{organization}/members", user)
    call("POST", f"/users/{user}/role-mappings/realm", [call("GET", f"/roles/{role}") for role in roles])


def _client(call: Call, client_id: str) -> str:
    return str(call("GET", f"/clients?clientId={client_id}")[0]["id"])


def _admin(secret: str) -> dict[str, Any]:
    return {
        "clientId": ADMIN_CLIENT,
        "secret": secret,
        "publicClient": False,
        "serviceAccountsEnabled": True,
        "standardFlowEnabled": False,
    }


def _command_line(audience: str) -> dict[str, Any]:
    # Passwords are for the local cloud only: nobody is there to approve a device.
    return {
        "clientId": CLI_CLIENT,
        "publicClient": True,
        "standardFlowEnabled": False,
        "directAccessGrantsEnabled": True,
        "attributes": {"oauth2.device.authorization.grant.enabled": "true", "access.token.lifespan": str(DAY)},
        "protocolMappers": [
            {
                "name": "audience",
                "protocol": "openid-connect",
                "protocolMapper": "oidc-audience-mapper",
                "config": {"included.custom.audience": audience, "access.token.claim": "true"},
            }
        ],
    }
