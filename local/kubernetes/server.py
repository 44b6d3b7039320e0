"""A simulated Kubernetes API on loopback HTTP."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from local.loopback import LoopbackServer

_LONGEST_WATCH = 60.0
PROTOBUF = "application/vnd.kubernetes.protobuf"
"""How kubectl writes some bodies; a real API reads it."""
_UNREADABLE: dict[str, Any] = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "reason": "UnsupportedMediaType",
    "message": "the simulated API reads JSON and YAML alone",
    "code": 415,
}


class ConnectionReset(Exception):
    """The connection ended without an answer."""


class Answers(Protocol):
    """Handler of requests."""

    def request(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> tuple[int, Any]:
        """The status and the body. Raises ``ConnectionReset``."""
        ...


def _lasts(target: str) -> float:
    """The seconds that a watch takes; what changes meanwhile is told at its end."""
    query = dict(parse_qsl(urlsplit(target).query))
    return min(float(query.get("timeoutSeconds") or 0), _LONGEST_WATCH) if query.get("watch") else 0.0


class Server(LoopbackServer):
    """Serves one API."""

    daemon_threads = True
    api: Answers

    def handle_error(self, *_: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body waits until its headers are acknowledged

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            time.sleep(_lasts(self.path))
            status: int = 415
            body: Any = _UNREADABLE
            if headers.get("content-type") != PROTOBUF:
                status, body = self.server.api.request(self.command, self.path, headers, raw)
        except ConnectionReset:
            self.close_connection = True
            return
        plain = isinstance(body, str)
        text = (body if plain else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8" if plain else "application/json")
        self.send_header("Content-Length", str(len(text)))
        causes = () if plain else (body.get("details") or {}).get("causes") or ()
        # A server that has too much to do says when to come back. A disruption budget cannot know.
        if status == 429 and not any(cause["reason"] == "DisruptionBudget" for cause in causes):
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815


def serve(
    api: Answers, context: ssl.SSLContext | None = None, address: tuple[str, int] = ("127.0.0.1", 0)
) -> tuple[Server, str]:
    """Listen on loopback; the server and its base URL. With ``context`` it uses TLS."""
    server = Server(address, _Handler)
    server.api = api
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True, name="kube-api").start()
    return server, f"http{'s' if context else ''}://{address[0]}:{server.server_address[1]}"
