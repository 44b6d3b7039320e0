"""A server waits for connections without looking at a clock, and ends at once when it is told to."""

from __future__ import annotations

import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from local.loopback import LoopbackServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""


@pytest.mark.parametrize("requests", [0, 3])
def test_it_answers_and_ends_at_once(requests: int) -> None:
    server = LoopbackServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    for _ in range(requests):
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_address[1]}/", timeout=10) as answer:
            assert answer.status == 204
    began = time.monotonic()
    server.shutdown()
    thread.join(10)
    server.server_close()
    assert not thread.is_alive()
    assert time.monotonic() - began < 5


def test_it_looks_at_no_clock_while_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    monkeypatch.setattr(LoopbackServer, "service_actions", lambda _server: looks.append(1))
    server = LoopbackServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    thread.join(1)
    assert looks == []
    server.shutdown()
    thread.join(10)
    server.server_close()
