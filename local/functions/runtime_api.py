"""Lambda's Runtime API for one worker process: hands it one invocation at a time and takes the answer."""

from __future__ import annotations

import json
import socket
import threading
import time
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from local.functions.invocation import Invocation, failure
from local.loopback import LoopbackServer

PREFIX = "/2018-06-01/runtime/"


@dataclass(slots=True)
class Request:
    """One running invocation. ``deadline`` is in seconds since 1970."""

    payload: bytes
    function_arn: str
    deadline: float
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    done: threading.Event = field(default_factory=threading.Event)
    answer: Invocation | None = None

    def finish(self, answer: Invocation) -> None:
        """Set the answer; the first one counts."""
        if not self.done.is_set():
            self.answer = answer
            self.done.set()


class RuntimeApi:
    """The server side. ``ready`` is set once the worker asks for its first invocation, or failed to start.

    A worker that asks again has given its former request up, as one whose connection broke while it was idle: the
    invocation goes to the newest request alone. One that could not be sent waits for the next request.
    """

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.init_error: Invocation | None = None
        self._changed = threading.Condition()
        self._pending: Request | None = None
        self._asked = 0
        """How often the worker has asked for an invocation."""
        self._closed = False
        self._current: Request | None = None
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.api = self
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """``host:port`` for ``AWS_LAMBDA_RUNTIME_API``."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def enqueue(self, request: Request) -> None:
        """Queue an invocation for the worker."""
        with self._changed:
            self._current = self._pending = request
            self._changed.notify_all()

    def abandon(self, answer: Invocation) -> None:
        """Answers the current invocation after the worker has ended."""
        if not self.ready.is_set():
            self.init_error = self.init_error or answer
            self.ready.set()
        if self._current:
            self._current.finish(answer)

    def close(self) -> None:
        """Stops serving. A waiting worker gets no further invocation."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(2)

    def next(self) -> Request | None:
        """Waits for the next invocation for the worker. None when the worker must end, or has asked again."""
        self.ready.set()
        with self._changed:
            self._asked += 1
            number = self._asked
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed or self._asked != number or self._pending is not None)
            if self._closed or self._asked != number:
                return None
            request, self._pending = self._pending, None
            return request

    def answered(self, request_id: str, answer: Invocation) -> bool:
        """Take an answer. False when it is not for the invocation at hand."""
        if self._current is None or self._current.id != request_id:
            return False
        self._current.finish(answer)
        return True

    def failed_to_start(self, body: bytes) -> None:
        """The worker could not load its handler."""
        self.init_error = Invocation(body, "Unhandled")
        self.ready.set()


class _Server(LoopbackServer):
    api: RuntimeApi
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Logs nothing when a killed worker drops its connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # With Nagle each answer would wait for the client's delayed ACK, 40 to 90 ms.
    wbufsize = -1
    server: _Server

    def do_GET(self) -> None:
        """``invocation/next``."""
        request = self.server.api.next()
        if request is not None and self._is_given_up():
            self.server.api.enqueue(request)
            request = None
        if request is None:
            self.close_connection = True
            return
        headers = {
            "Lambda-Runtime-Aws-Request-Id": request.id,
            "Lambda-Runtime-Deadline-Ms": str(int(request.deadline * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": request.function_arn,
            "Lambda-Runtime-Trace-Id": f"Root=1-{int(time.time()):08x}-{uuid.uuid4().hex[:24]};Sampled=0",
        }
        try:
            self._reply(200, request.payload, headers)
        except OSError:
            self.server.api.enqueue(request)
            raise

    def _is_given_up(self) -> bool:
        """Whether the worker has closed the connection: what is written to it would be lost without an error."""
        try:
            return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def do_POST(self) -> None:
        """``invocation/{id}/response``, ``invocation/{id}/error`` or ``init/error``."""
        body = self._body()
        parts = self.path.removeprefix(PREFIX).split("/")
        api = self.server.api
        accepted = True
        if parts == ["init", "error"]:
            api.failed_to_start(body)
        elif parts[-1] == "response":
            accepted = api.answered(parts[1], Invocation(body))
        else:
            accepted = api.answered(parts[1], _raised(body))
        self._reply(202 if accepted else 400, b"", {})

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


def _raised(body: bytes) -> Invocation:
    try:
        json.loads(body)
    except ValueError:
        return failure("Runtime.InvalidError", "the runtime sent an error that is not JSON")
    return Invocation(body, "Unhandled")
