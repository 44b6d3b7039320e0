"""A Keycloak to talk to: the stand-in, or a real one where Java and Maven are there."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from local.identity.server import IdentityServer
from stockyard.adapters.keycloak import Keycloak


@dataclass(frozen=True, slots=True)
class Realm:
    """A running server's realm, and the admin client that the installation has there."""

    issuer: str
    admin_client_id: str
    admin_client_secret: str
    password: str
    """Of the person ``local-user``."""


@dataclass(slots=True)
class Door:
    """One running server, and the calls that the tests make to it without the adapter."""

    server: IdentityServer | Realm

    def adapter(self, installation: str = "inst-1", **extra: str) -> Keycloak:
        """An installation's adapter, logged in as the server's admin client; ``extra`` goes into its secret."""
        secret = {"client_id": self.server.admin_client_id, "client_secret": self.server.admin_client_secret, **extra}
        return Keycloak(
            self.server.issuer,
            "stockyard",
            installation=installation,
            read_secret=lambda _: json.dumps(secret),
            admin_secret="admin",
        )

    def post(self, path: str, form: dict[str, str]) -> httpx.Response:
        """POST a form to an OpenID Connect endpoint."""
        return httpx.post(f"{self.server.issuer}/protocol/openid-connect/{path}", data=form, timeout=30)

    def token(self, client_id: str, secret: str, **form: str) -> httpx.Response:
        """Ask for a token; empty fields are left out."""
        data = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret, **form}
        return self.post("token", {name: value for name, value in data.items() if value})

    @property
    def clients(self) -> str:
        """The URL of the admin API's clients."""
        return self.server.issuer.replace("/realms/", "/admin/realms/") + "/clients"

    def admin(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """Call the admin API of clients as the admin client."""
        token = self.token(self.server.admin_client_id, self.server.admin_client_secret).json()["access_token"]
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.request(method, self.clients + path, json=body, headers=headers, timeout=30)

    @staticmethod
    def claims(token: str) -> dict[str, Any]:
        """The payload of a JWT, unchecked."""
        part = token.split(".")[1]
        payload: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        return payload


@pytest.fixture(scope="session")
def doors(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Door]]:
    """The server of a kind; the stand-in starts when it is first asked for, and stops at the end."""
    running: dict[str, Door] = {}
    stand_in = IdentityServer()

    def door(kind: str) -> Door:
        if kind not in running:
            if kind == "keycloak":
                cloud = request.getfixturevalue("real")
                client_id, secret = cloud.identity_admin()
                running[kind] = Door(Realm(cloud.issuer, client_id, secret, cloud.environment["STOCKYARD_PASSWORD"]))
            else:
                stand_in.start()
                running[kind] = Door(stand_in)
        return running[kind]

    yield door
    stand_in.stop()


@pytest.fixture(params=["stand-in", pytest.param("keycloak", marks=pytest.mark.keycloak)])
def door(request: pytest.FixtureRequest, doors: Callable[[str], Door]) -> Door:
    """The stand-in, then a real Keycloak."""
    return doors(request.param)
