"""A simulated Kubernetes API on loopback HTTP."""

from __future__ import annotations

import json
import select
import ssl
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from local.loopback import LoopbackServer

_LONGEST_WATCH = 1800.0
"""Seconds after which a watch ends that names no time of its own, as the API server ends them too."""
_LOOK_SECONDS = 1.0
"""Time after which a watch looks again whether its client has gone."""
TOGETHER_SECONDS = 0.05
"""Changes that come within this time are told at once."""


class ConnectionReset(Exception):
    """The connection is_over without an answer."""


class Watches(Protocol):
    """Changes as they come, see :class:`local.kubernetes.watches.Watch`."""

    is_over: bool

    def text(self) -> str:
        """Changes since it was asked last."""
        ...

    def wait(self, seconds: float) -> None:
        """Wait for a change, no longer than some seconds."""
        ...


class Answers(Protocol):
    """Handler of requests."""

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> tuple[int, Any]:
        """The status, and the body: an object, text, or the ``Watches`` of a watch. Raises ``ConnectionReset``."""
        ...


def _lasts(target: str) -> float:
    """The seconds that a watch takes."""
    query = dict(parse_qsl(urlsplit(target).query))
    return min(float(query.get("timeoutSeconds") or _LONGEST_WATCH), _LONGEST_WATCH)


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
            status, body = self.server.api.answer(self.command, self.path, headers, raw)
        except ConnectionReset:
            self.close_connection = True
            return
        if hasattr(body, "wait"):
            self._stream(body)
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

    def _stream(self, watch: Watches) -> None:
        """Tell what changes, when it does, until the watch's time is over or its client goes."""
        ends_at = time.monotonic() + _lasts(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while True:
                if text := watch.text().encode():
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
                seconds = ends_at - time.monotonic()
                if watch.is_over or seconds <= 0 or self._is_left():
                    break
                watch.wait(min(seconds, _LOOK_SECONDS))
                time.sleep(min(max(0.0, ends_at - time.monotonic()), TOGETHER_SECONDS))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    def _is_left(self) -> bool:
        """Whether the client has closed the connection, or the server has stopped."""
        return self.server.socket.fileno() < 0 or bool(select.select([self.connection], [], [], 0)[0])

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
