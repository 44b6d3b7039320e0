"""The simulated Vault on a port of the loopback, and what somebody sets up in a Vault for Stockyard."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from local.loopback import LoopbackServer
from local.vault.simulated import POLICY_NAME, SimulatedVault

MOST_BODY = 1_000_000


class Vault(Protocol):
    """One that runs: ``url`` without a slash at its end, and the token that may do everything."""

    url: str
    root: str


def ask(
    vault: Vault, method: str, path: str, body: Any = None, *, token: str | None = None, wrap_seconds: int = 0
) -> tuple[int, Any]:
    """Status and document of an answer; as ``root`` without a token, without any for an empty one."""
    headers = {"X-Vault-Token": vault.root if token is None else token}
    if wrap_seconds:
        headers["X-Vault-Wrap-TTL"] = str(wrap_seconds)
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310
        f"{vault.url}/v1/{path}", data, {key: value for key, value in headers.items() if value}, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"null")


def app_role(vault: Vault, name: str = "stockyard", **limits: int) -> tuple[str, str]:
    """Role id and secret id of an AppRole with the policy. ``limits``: ``secret_id_ttl``, ``secret_id_num_uses``."""
    role = f"auth/approle/role/{name}"
    ask(vault, "POST", role, {"token_policies": POLICY_NAME, **limits})
    role_id = ask(vault, "GET", f"{role}/role-id")[1]["data"]["role_id"]
    return role_id, ask(vault, "POST", f"{role}/secret-id", {})[1]["data"]["secret_id"]


class VaultServer:
    """Listens from the beginning. :meth:`close` and :meth:`open` play an outage: what is kept stays."""

    def __init__(self, vault: SimulatedVault | None = None) -> None:
        self.vault = vault or SimulatedVault()
        self.root = self.vault.root
        self._port = 0
        self.open()

    def open(self) -> None:
        """Listen, on the same port as before."""
        self._server = _Server(("127.0.0.1", self._port), _Handler)
        self._server.vault = self.vault
        self._port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True, name="vault")
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class _Server(LoopbackServer):
    daemon_threads = True
    vault: SimulatedVault


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = 30

    def serve(self) -> None:
        """Hand the request on."""
        length = min(int(self.headers.get("content-length") or 0), MOST_BODY)
        fields = {name.lower(): value for name, value in self.headers.items()}
        path = unquote(urlsplit(self.path).path)
        status, document = self.server.vault.answer(self.command, path, fields, self.rfile.read(length))
        content = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Logs nothing."""


for _method in ("GET", "POST", "DELETE"):
    setattr(_Handler, f"do_{_method}", _Handler.serve)
