"""A run's side of the API on the loopback: what to do, log, end, and the state with its lock."""

from __future__ import annotations

import base64
import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "run-token-0123456789"


def archive(files: Mapping[str, str]) -> str:
    """The files as a run is given them: a compressed archive in base64."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return base64.b64encode(buffer.getvalue()).decode()


@dataclass
class RunApi:
    """One run. ``refusals`` are statuses that the next calls are answered with, by the call's name."""

    task: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    ends: list[dict[str, Any]] = field(default_factory=list)
    state: bytes | None = None
    lock: dict[str, Any] | None = None
    run: int = 1
    """Number of the run whose program calls."""
    begun_runs: set[int] = field(default_factory=set)
    refusals: dict[str, list[int]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    needed_until: str | None = None
    """Line after which nobody needs the run any more; None: it is needed to its end."""
    foreign: int = 0
    """Calls without the run's token."""
    url: str = ""

    def answer(self, method: str, part: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer to a call."""
        self.calls.append(f"{method} {part}")
        if self.refusals.get(part):
            return self.refusals[part].pop(0), b""
        if part == "state":
            return self._state(method, body)
        if part == "lock":
            return self._lock(method, json.loads(body or b"{}"))
        return 200, json.dumps(self._document(part, json.loads(body))).encode() if part != "begin" else b""

    def begin(self) -> tuple[int, bytes]:
        """Task of a run, once."""
        if self.run in self.begun_runs:
            return 409, b""
        self.begun_runs.add(self.run)
        return 200, json.dumps(self.task).encode()

    def _document(self, part: str, document: dict[str, Any]) -> dict[str, Any]:
        if part == "log":
            line_count = len(self.lines)
            assert document["first"] <= line_count + 1, "a line is missing"
            self.lines += document["lines"][line_count + 1 - document["first"] :]
            return {"status": "accepted", "stop": self.needed_until in self.lines}
        self.ends.append(document)
        return {}

    def _state(self, method: str, body: bytes) -> tuple[int, bytes]:
        if method == "GET":
            return (200, self.state) if self.state is not None else (204, b"")
        self.state = body if method == "POST" else None
        return 200, b""

    def _lock(self, method: str, info: dict[str, Any]) -> tuple[int, bytes]:
        if method == "PUT":
            if self.lock is not None:
                return 423, json.dumps(self.lock).encode()
            self.lock = info
            return 200, b""
        self.lock = None
        return 200, b""


@contextmanager
def serving(api: RunApi) -> Iterator[RunApi]:
    """Serve the run while the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            part = self.path.rpartition("/")[2].partition("?")[0]
            basic = base64.b64encode(f"run:{TOKEN}".encode()).decode()
            if self.headers.get("Authorization") not in (f"Bearer {TOKEN}", f"Basic {basic}"):
                api.foreign += 1
                status, text = 403, b""
            else:
                with gate:
                    status, text = api.answer(self.command, part, body)
                    if part == "begin" and status == 200:
                        status, text = api.begin()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815

    gate = threading.Lock()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_address[1]}/v1/runs/run_1"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
