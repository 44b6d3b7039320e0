"""A quick HTTP server for moto: connections stay open, services are looked up and documents parsed once."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from http import HTTPStatus
from typing import Any
from unittest.mock import patch

from moto import backends
from moto.moto_server import threaded_moto_server
from moto.moto_server.werkzeug_app import MotoRequestHandler
from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser
from werkzeug.exceptions import InternalServerError

from local.aws.corrections.quick.tables import PLAIN, table_answer

DOCUMENTS = 64
"""How many parsed workflow documents are kept, for the next local cloud of a process too."""
_PARSE = lru_cache(DOCUMENTS)(AmazonStateLanguageParser.parse)


@contextmanager
def quick_server() -> Iterator[None]:
    """A server started inside this context answers like moto's own server, in a fraction of the time.

    moto lists its own folder for each request, opens a thread and a connection for each, and parses a state machine's
    document for each execution.
    """
    with ExitStack() as stack:
        modules = frozenset(backends.list_of_moto_modules())
        stack.enter_context(patch.object(backends, "list_of_moto_modules", lambda: modules))
        stack.enter_context(patch.object(threaded_moto_server, "MotoRequestHandler", KeepsConnection))
        stack.enter_context(patch.object(AmazonStateLanguageParser, "parse", staticmethod(_PARSE)))
        yield


class KeepsConnection(MotoRequestHandler):  # type: ignore[misc]
    """Answers requests one after the other on a connection, with complete bodies in both directions."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def run_wsgi(self) -> None:
        """Answers one request. The body is always read, because the next request follows it on the connection."""
        service, _, action = self.headers.get("X-Amz-Target", "").partition(".")
        if service == "DynamoDB_20120810" and action in PLAIN:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, headers, answered = table_answer(self.headers, body)
            self._write(str(status), headers.items(), answered)
            return
        self.environ = environ = self.make_environ()
        chunked = bool(environ.get("wsgi.input_terminated"))
        size = -1 if chunked else int(environ.get("CONTENT_LENGTH") or 0)
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(size))
        try:
            answer = _answer(self.server.app, environ)
        except Exception:
            self.log_exception(environ)
            answer = _answer(InternalServerError(), environ)
        self._write(*answer)

    def log_exception(self, environ: Any) -> None:
        """Answers a request that moto cannot answer."""
        import traceback

        self.server.log("error", f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}\n{traceback.format_exc()}")

    def _write(self, status: str, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        code = int(status.split(None, 1)[0])
        self.send_response_only(code, HTTPStatus(code).phrase if code in _CODES else "")
        bodiless = self.command == "HEAD" or code < 200 or code in {204, 304}
        for name, value in headers:
            if bodiless or name.lower() != "content-length":
                self.send_header(name, value)
        if not bodiless:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if not bodiless:
            self.wfile.write(body)
        self.wfile.flush()


_CODES = frozenset(HTTPStatus)


def _answer(app: Callable[..., Iterable[bytes]], environ: Any) -> tuple[str, list[tuple[str, str]], bytes]:
    status_and_headers: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], _fault: Any = None) -> Callable[[bytes], None]:
        status_and_headers[:] = [status, headers]
        return lambda _: None

    chunks = app(environ, start_response)
    try:
        body = b"".join(chunks)
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
    return status_and_headers[0], status_and_headers[1], body
