"""Requests of the attestor's own sender on the wire."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from stockyard.adapters.sts_attestor import Call, _send


class _Redirecting(BaseHTTPRequestHandler):
    requests: list[tuple[str, dict[str, str], bytes]]

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(302)
        self.send_header("Location", "/again")
        self.send_header("Content-Length", str(100_000))
        self.end_headers()
        self.wfile.write(b"x" * 100_000)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    _Redirecting.requests = []
    server = HTTPServer(("127.0.0.1", 0), _Redirecting)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def test_one_request_no_redirect_and_a_bounded_answer(server: HTTPServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    url = urlsplit(f"http://127.0.0.1:{server.server_address[1]}/?Action=GetCallerIdentity")
    status, body = _send(Call("POST", url, {"host": "sts.amazonaws.com", "x-stockyard-host": "h"}, b"a=b"))
    assert status == 302
    assert len(body) == 64 * 1024
    ((path, headers, sent),) = _Redirecting.requests
    assert (path, sent) == ("/?Action=GetCallerIdentity", b"a=b")
    assert headers == {
        "host": "sts.amazonaws.com",
        "x-stockyard-host": "h",
        "accept-encoding": "identity",
        "content-length": "3",
    }
