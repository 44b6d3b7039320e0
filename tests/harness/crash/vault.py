"""The Vault of the account in the crash world: the simulated one, whose requests of the product pass the tap."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx

from local.vault.simulated import POLICY_NAME, SimulatedVault
from stockyard.providers.addresses import Guard
from stockyard.providers.clouds.cudo.vault import Vault, VaultClient
from tests.harness.crash.faults import Errors, Tap
from tests.harness.crash.tapped_cudo import named
from tests.harness.worlds.memory import FixedClock

ADDRESS = "https://vault.acme.example"
ROLE = "auth/approle/role/stockyard"
ERRORS = Errors(
    lambda: httpx.ReadTimeout("no answer in time"),
    lambda: httpx.HTTPStatusError("", request=httpx.Request("GET", ADDRESS), response=httpx.Response(429)),
    lambda: httpx.HTTPStatusError("", request=httpx.Request("GET", ADDRESS), response=httpx.Response(403)),
)


class CrashVault:
    """``role_id`` and ``secret_id`` are the account's. A machine opens its disk as ``stockyard_disk.py`` does."""

    def __init__(self, clock: FixedClock) -> None:
        self.vault = SimulatedVault(lambda: clock.now().timestamp())
        self._opened: set[str] = set()
        self._ask("POST", ROLE, self.vault.root, {"token_policies": POLICY_NAME})
        self.role_id = self._ask("GET", f"{ROLE}/role-id", self.vault.root)["data"]["role_id"]
        self.secret_id = self._ask("POST", f"{ROLE}/secret-id", self.vault.root)["data"]["secret_id"]

    def keys(self) -> set[str]:
        """The clusters of whose disk there is a key."""
        return self.vault.names()

    def open_disk(self, machine_id: str, config: Mapping[str, Any]) -> None:
        """The machine fetches its secret id, once, and makes the key when there is none."""
        if machine_id in self._opened:
            return
        secret_id = self._ask("POST", "sys/wrapping/unwrap", config["wrapped_secret_id"])["data"]["secret_id"]
        login = self._ask("POST", "auth/approle/login", "", {"role_id": config["role_id"], "secret_id": secret_id})
        if config["client_id"] not in self.keys():
            data = {"data": {"key": "k"}, "options": {"cas": 0}}
            self._ask("POST", f"secret/data/stockyard/{config['client_id']}", login["auth"]["client_token"], data)
        self._opened.add(machine_id)

    def _ask(self, method: str, path: str, token: str, body: Any = None) -> Any:
        content = json.dumps(body).encode() if body is not None else b""
        status, document = self.vault.answer(method, f"/v1/{path}", {"x-vault-token": token}, content)
        assert status in (200, 204), (method, path, document)
        return document


class TappedVault(httpx.BaseTransport):
    """Every request passes the tap, as ``vault.Login``, ``vault.GenerateSecretId`` or ``vault.DeleteKey``."""

    def __init__(self, vault: SimulatedVault, tap: Tap) -> None:
        self._transport, self._tap = vault.transport(), tap

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The Vault's answer, or what the tap makes of it."""
        request.read()
        last = request.url.path.rpartition("/")[2]
        operation = {"login": "Login", "secret-id": "GenerateSecretId"}.get(last, "DeleteKey")
        self._tap.parameters = {"id": named("disk_key", last)} if operation == "DeleteKey" else {}
        try:
            return self._tap.around(f"vault.{operation}", lambda: self._transport.handle_request(request), ERRORS)
        except httpx.HTTPStatusError as error:
            return httpx.Response(error.response.status_code, json={"errors": ["made by a test"]})


def tapped(vault: Vault, simulated: SimulatedVault, tap: Tap) -> VaultClient:
    """The client of the account's Vault, whose name leads to an address that may be called."""
    return VaultClient(vault, TappedVault(simulated, tap), guard=Guard(resolve=lambda *_: ["192.0.2.9"]))
