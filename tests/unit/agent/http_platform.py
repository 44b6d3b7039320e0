"""A Stockyard that commands, on loopback HTTP: for agents in a process of their own."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.unit.agent.rig import Platform


class HttpPlatform:
    """A ``Platform`` on loopback HTTP."""

    def __init__(self, platform: Platform) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.platform = platform
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True, name="platform").start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    platform: Platform

    def handle_error(self, *_: Any) -> None:
        """An agent that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, answer, more = self.server.platform.answer("POST", self.path, headers, raw)
        text = json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {**more, "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)
