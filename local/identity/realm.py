"""The realm of the Keycloak stand-in: clients, tokens, device codes. No HTTP here."""

from __future__ import annotations

import json
import secrets
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from local.identity.clients import DEFAULTS
from local.identity.codes import CONSOLE_CLIENT, Codes, Request, console_client, read_request
from local.identity.federation import Federation
from local.identity.keys import SigningKey
from local.identity.people import Person, local_people
from local.identity.refusals import Refused, oauth_refusal

REALM = "stockyard"
ADMIN_CLIENT = "stockyard-admin"
CLI_CLIENT = "stockyard-cli"
TOKEN_SECONDS = 300
DEVICE_SECONDS = 600
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"

_DEVICE_FLAG = "oauth2.device.authorization.grant.enabled"
_AUDIENCE_MAPPER = "oidc-audience-mapper"
_SCOPE = "email profile"
_SCOPES = frozenset({"openid", "email", "profile", "organization", "offline_access"})
_BAD_CLIENT = "Invalid client or Invalid client credentials"


def organization_id(tenant: str) -> str:
    """The id of the tenant's organization."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{tenant}.organizations.example"))


@dataclass(slots=True)
class _Device:
    user_code: str
    client_id: str
    expires_at: float
    approved: bool
    scope: str


@dataclass(slots=True)
class Realm:
    """State and rules of one realm. ``issuer`` is set by the server once it knows its address."""

    audience: str = "stockyard"
    issuer: str = ""
    auto_approve: bool = True
    people: list[Person] = field(default_factory=local_people)
    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    admin_secret: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _devices: dict[str, _Device] = field(default_factory=dict)
    codes: Codes = field(default_factory=Codes)
    federation: Federation = field(default_factory=Federation)
    _refresh: dict[str, tuple[str, str, Person]] = field(default_factory=dict)
    """Client, scope and person by refresh token."""
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _key: SigningKey = field(default_factory=SigningKey)

    def __post_init__(self) -> None:
        base = {"standardFlowEnabled": False}
        self.create({**base, "clientId": ADMIN_CLIENT, "secret": self.admin_secret, "serviceAccountsEnabled": True})
        mapper = {"included.custom.audience": self.audience, "access.token.claim": "true"}
        own = [{"name": "audience", "protocolMapper": _AUDIENCE_MAPPER, "config": mapper}]
        public = {"publicClient": True, "attributes": {_DEVICE_FLAG: "true"}, "protocolMappers": own}
        self.create({**base, **public, "clientId": CLI_CLIENT})

    @property
    def person(self) -> Person:
        """The person who approves logins with the device flow."""
        return self.people[0]

    # --- tokens ------------------------------------------------------------------------------------------------------

    def certificates(self) -> dict[str, Any]:
        """The JSON Web Key Set."""
        return self._key.certificates()

    def token(
        self,
        tenant: str,
        roles: Sequence[str] = (),
        client_id: str = CLI_CLIENT,
        subject: str = "local-user",
        ttl: int = 86_400,
    ) -> str:
        """An access token of a person of ``tenant`` that lives ``ttl`` seconds (it may be negative)."""
        client = self.named(client_id)
        claims = {
            **self._base(client_id, subject, ttl),
            "aud": self.audience,
            "realm_access": {"roles": list(roles)},
            "organization": {tenant: {"id": organization_id(tenant)}},
            "preferred_username": subject,
        }
        if client is not None and self.audience not in _audiences(client):
            del claims["aud"]
        if client is not None and not client["fullScopeAllowed"]:
            del claims["realm_access"]
        return self._key.sign(claims)

    def _base(self, client_id: str, subject: str, ttl: int) -> dict[str, Any]:
        now = int(time.time())
        return {
            "exp": now + ttl,
            "iat": now,
            "jti": str(uuid.uuid4()),
            "iss": self.issuer,
            "sub": subject,
            "typ": "Bearer",
            "azp": client_id,
            "acr": "1",
            "scope": _SCOPE,
        }

    def _service_token(self, client: Mapping[str, Any], scope: str) -> str:
        name = client["clientId"]
        claims = {
            **self._base(name, service_user(client)["id"], TOKEN_SECONDS),
            "scope": scope,
            "clientHost": "127.0.0.1",
            "email_verified": False,
            "preferred_username": f"service-account-{name}",
            "clientAddress": "127.0.0.1",
            "client_id": name,
        }
        audiences = []
        if name == ADMIN_CLIENT:
            audiences.append("realm-management")
            claims["resource_access"] = {"realm-management": {"roles": ["manage-clients"]}}
        for mapper in client.get("protocolMappers", []):
            config = mapper.get("config", {})
            if config.get("access.token.claim") != "true":
                continue
            if mapper["protocolMapper"] == "oidc-hardcoded-claim-mapper":
                value = config["claim.value"]
                claims[config["claim.name"]] = json.loads(value) if config.get("jsonType.label") == "JSON" else value
        audiences += _audiences(client)
        if client["fullScopeAllowed"]:
            audiences.append("account")
            claims["realm_access"] = {"roles": [f"default-roles-{REALM}", "offline_access", "uma_authorization"]}
        if audiences:
            claims["aud"] = audiences[0] if len(audiences) == 1 else audiences
        return self._key.sign(claims)

    # --- the token endpoint ------------------------------------------------------------------------------------------

    def grant(self, form: Mapping[str, str]) -> dict[str, Any]:
        """The token endpoint: client credentials, device code, refresh."""
        with self._lock:
            grant = form.get("grant_type", "")
            if not grant:
                raise oauth_refusal(400, "invalid_request", "Missing form parameter: grant_type")
            client = self._authenticate(form)
            if grant == "client_credentials":
                if client["publicClient"] or not client["serviceAccountsEnabled"]:
                    raise oauth_refusal(401, "unauthorized_client", "Client not enabled to retrieve service account")
                scope = _scope(form.get("scope"))
                return _answer(self._service_token(client, scope), scope)
            if grant == DEVICE_GRANT:
                return self._by_device(client, form.get("device_code", ""))
            if grant == "refresh_token":
                return self._refreshed(client, form.get("refresh_token", ""))
            if grant == "authorization_code":
                name, scope = self.codes.redeem(client["clientId"], form)
                return self._with_refresh(self.named_person(name), client["clientId"], scope)
            raise oauth_refusal(400, "unsupported_grant_type", "Unsupported grant_type")

    def start_device(self, form: Mapping[str, str]) -> dict[str, Any]:
        """Begin the device flow: the codes, and where a person approves."""
        with self._lock:
            client = self._authenticate(form)
            if client.get("attributes", {}).get(_DEVICE_FLAG) != "true":
                raise oauth_refusal(
                    400,
                    "unauthorized_client",
                    "Client is not allowed to initiate OAuth 2.0 Device Authorization Grant. "
                    "The flow is disabled for the client.",
                )
            letters = "".join(secrets.choice("BCDFGHJKLMNPQRSTVWXZ") for _ in range(8))
            device, user = secrets.token_urlsafe(32), f"{letters[:4]}-{letters[4:]}"
            ends = time.time() + DEVICE_SECONDS
            scope = _scope(form.get("scope"))
            self._devices[device] = _Device(user, client["clientId"], ends, self.auto_approve, scope)
            page = f"{self.issuer}/device"
            return {
                "device_code": device,
                "user_code": user,
                "verification_uri": page,
                "verification_uri_complete": f"{page}?user_code={user}",
                "expires_in": DEVICE_SECONDS,
                "interval": 1,
            }

    def approve(self, user_code: str) -> bool:
        """Approve a device login. Returns False for a code that is not pending."""
        with self._lock:
            for device in self._devices.values():
                if device.user_code == user_code.upper() and device.expires_at > time.time():
                    device.approved = True
                    return True
            return False

    def _by_device(self, client: Mapping[str, Any], code: str) -> dict[str, Any]:
        device = self._devices.get(code)
        if device is None or device.client_id != client["clientId"]:
            raise oauth_refusal(400, "invalid_grant", "Device code not valid")
        if device.expires_at <= time.time():
            raise oauth_refusal(400, "expired_token", "Device code is expired")
        if not device.approved:
            raise oauth_refusal(400, "authorization_pending", "The authorization request is still pending")
        del self._devices[code]
        return self._with_refresh(self.person, device.client_id, device.scope)

    def _with_refresh(self, person: Person, client_id: str, scope: str) -> dict[str, Any]:
        refresh = secrets.token_urlsafe(32)
        self._refresh[refresh] = (client_id, scope, person)
        return self._persons(person, client_id, scope, refresh)

    def _refreshed(self, client: Mapping[str, Any], token: str) -> dict[str, Any]:
        name, scope, person = self._refresh.get(token, (None, "", self.person))
        if name is None or name != client["clientId"]:
            raise oauth_refusal(400, "invalid_grant", "Invalid refresh token")
        if name != CONSOLE_CLIENT:
            return self._persons(person, name, scope, token)
        del self._refresh[token]  # a browser's token is good for one use
        return self._with_refresh(person, name, scope)

    # --- logins by a browser -----------------------------------------------------------------------------------------

    def console_at(self, url: str) -> None:
        """Make the public client of the console that is served below ``url``."""
        with self._lock:
            self.create(console_client(url, self.audience))

    def authorization(self, query: Mapping[str, str]) -> Request:
        """The request of a browser. Raises ``Refused`` or ``SentBack``."""
        return read_request(self.named(query.get("client_id", "")), query, _scope(query.get("scope")))

    def named_person(self, name: str) -> Person:
        """The person of that name. Raises ``Refused``."""
        for person in self.people:
            if person.subject == name:
                return person
        raise Refused(400, {"error": "Invalid username or password."})

    def end_session(self, session: str) -> None:
        """End a browser's session, and its person's refresh tokens of the console."""
        with self._lock:
            name = self.codes.end(session)
            for token, (client, _, person) in tuple(self._refresh.items()):
                if client == CONSOLE_CLIENT and person.subject == name:
                    del self._refresh[token]

    def sign_in(self, person: Person, ttl: int) -> dict[str, Any]:
        """All tokens that the command line gets of a person."""
        return self._persons(person, CLI_CLIENT, _scope("openid organization"), secrets.token_urlsafe(32), ttl)

    def _persons(
        self, person: Person, client_id: str, scope: str, refresh: str, ttl: int = TOKEN_SECONDS
    ) -> dict[str, Any]:
        access = self.token(person.tenant, person.roles, client_id, person.subject, ttl)
        response = {**_answer(access, scope), "refresh_expires_in": 1800, "refresh_token": refresh}
        if "openid" in scope.split():
            about = {"typ": "ID", "aud": client_id, "preferred_username": person.subject, "email_verified": False}
            about |= {"organization": {person.tenant: {"id": organization_id(person.tenant)}}} if person.tenant else {}
            claims = {**self._base(client_id, person.subject, ttl), **about}
            del claims["scope"]
            response["id_token"] = self._key.sign(claims)
        return response

    def _authenticate(self, form: Mapping[str, str]) -> dict[str, Any]:
        if "client_assertion" in form:
            return self.federation.client_of(form, self.issuer, self.clients.values())
        client = self.named(form.get("client_id", ""))
        if client is None or not client["enabled"]:
            raise oauth_refusal(401, "invalid_client", _BAD_CLIENT)
        if not client["publicClient"]:
            secret = form.get("client_secret", "")
            if not secrets.compare_digest(secret.encode(), client["secret"].encode()):
                raise oauth_refusal(401, "unauthorized_client", _BAD_CLIENT)
        return client

    # --- clients -----------------------------------------------------------------------------------------------------

    def named(self, client_id: str) -> dict[str, Any] | None:
        """The client with this ``clientId``."""
        with self._lock:
            return next((client for client in self.clients.values() if client["clientId"] == client_id), None)

    def listed(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        """Clients by ``clientId``, or all in order of it, from ``first``, at most ``max``."""
        with self._lock:
            clients = sorted(self.clients.values(), key=lambda client: str(client["clientId"]))
            if "clientId" in query:
                clients = [client for client in clients if client["clientId"] == query["clientId"]]
            first = int(query.get("first", "0"))
            size = int(query.get("max", "-1"))
            return [dict(client) for client in (clients[first:] if size < 0 else clients[first : first + size])]

    def create(self, representation: Mapping[str, Any]) -> str:
        """Make a client and return its uuid; 409 when there is one of that ``clientId``."""
        with self._lock:
            name = representation.get("clientId") or str(uuid.uuid4())
            if self.named(name) is not None:
                raise Refused(409, {"errorMessage": f"Client {name} already exists"})
            key = str(uuid.uuid4())
            client = {"id": key, **DEFAULTS, **representation, "clientId": name}
            if not client["publicClient"]:
                client.setdefault("secret", secrets.token_urlsafe(24))
            self.clients[key] = client
            return key

    def get_client(self, key: str) -> dict[str, Any]:
        """The client with this uuid, or 404."""
        with self._lock:
            if key not in self.clients:
                raise Refused(404, {"error": "Could not find client"})
            return self.clients[key]

    def update(self, key: str, representation: Mapping[str, Any]) -> None:
        """Overwrite the fields of ``representation``. Other fields stay, also the mappers."""
        with self._lock:
            client = self.get_client(key)
            changed = {name: value for name, value in representation.items() if name not in {"id", "protocolMappers"}}
            if "attributes" in changed:
                changed["attributes"] = {**client.get("attributes", {}), **changed["attributes"]}
            client.update(changed)

    def remove(self, key: str) -> None:
        """Delete, or 404."""
        with self._lock:
            self.get_client(key)
            del self.clients[key]

    def new_secret(self, key: str) -> str:
        """Replace a client's secret by a random one and return it."""
        with self._lock:
            client = self.get_client(key)
            client["secret"] = secrets.token_urlsafe(24)
            return str(client["secret"])

    def is_admin(self, token: str) -> bool:
        """Whether the token is one of ours, still valid, with the role ``manage-clients``; 401 if not a valid one."""
        claims = self._key.verified(token)
        if claims is None or claims["exp"] <= time.time():
            raise Refused(401, {"error": "HTTP 401 Unauthorized"})
        roles = claims.get("resource_access", {}).get("realm-management", {}).get("roles", [])
        return "manage-clients" in roles


def _audiences(client: Mapping[str, Any]) -> list[str]:
    """Audiences that the client's mappers add to its access tokens."""
    mappers = (mapper for mapper in client.get("protocolMappers", ()) if mapper["protocolMapper"] == _AUDIENCE_MAPPER)
    configs = (mapper.get("config", {}) for mapper in mappers)
    return [config["included.custom.audience"] for config in configs if config.get("access.token.claim") == "true"]


def service_user(client: Mapping[str, Any]) -> dict[str, Any]:
    """The service account of a client; its id follows from the client's."""
    name = f"service-account-{client['clientId']}"
    return {"id": str(uuid.uuid5(uuid.UUID(client["id"]), name)), "username": name, "enabled": True}


def _scope(requested: str | None) -> str:
    """The granted scope: the default scopes and the requested ones. An unknown scope gets 400."""
    names = requested.split(" ") if requested is not None else []
    if not set(names) <= _SCOPES:
        raise oauth_refusal(400, "invalid_scope", f"Invalid scopes: {requested}")
    return " ".join(dict.fromkeys([*names, *_SCOPE.split()]))


def _answer(access: str, scope: str = _SCOPE) -> dict[str, Any]:
    return {
        "access_token": access,
        "expires_in": TOKEN_SECONDS,
        "refresh_expires_in": 0,
        "token_type": "Bearer",
        "not-before-policy": 0,
        "scope": scope,
    }
