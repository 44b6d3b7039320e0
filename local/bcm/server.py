"""The simulated head node on a port of the loopback, behind TLS that asks for a client certificate."""

from __future__ import annotations

import ssl
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from local.bcm.head_node import HeadNode
from local.loopback import LoopbackServer

MOST_BODY = 4_000_000


class HeadNodeServer:
    """``certificate`` and ``key`` are the server's files. Client certificates of ``authority`` are taken; who has none
    is answered 401, and one that is not valid ends the handshake."""

    def __init__(self, head_node: HeadNode, certificate: Path, key: Path, authority: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(authority)
        context.verify_mode = ssl.CERT_OPTIONAL
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.head_node, self._server.lock, self._server.tls = head_node, threading.Lock(), context
        self.port = int(self._server.server_address[1])
        self.url = f"https://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True, name="head node")
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class _Server(LoopbackServer):
    daemon_threads = True
    head_node: HeadNode
    lock: threading.Lock
    tls: ssl.SSLContext

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing is said of clients that end a connection."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 30

    def setup(self) -> None:
        # In the connection's own thread, so that one who says nothing hinders no other.
        self.request.settimeout(self.timeout)
        self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def finish(self) -> None:
        super().finish()
        self.connection.close()

    def serve(self) -> None:
        """Hand the request on."""
        length = min(int(self.headers.get("content-length") or 0), MOST_BODY)
        body = self.rfile.read(length)
        with self.server.lock:
            status, kind, content = self.server.head_node.answer(self.command, self.path, body, self._person())
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _person(self) -> str | None:
        certificate = self.connection.getpeercert()
        names = [
            value for part in (certificate or {}).get("subject", ()) for name, value in part if name == "commonName"
        ]
        return names[0] if names else None

    def log_message(self, format: str, *args: object) -> None:
        """Calls are noted by the head node itself."""


for _method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
    setattr(_Handler, f"do_{_method}", _Handler.serve)
