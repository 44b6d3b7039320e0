"""An API that answers with the examples of its contract, for pages of the console: no cloud stands behind it. Tests put
other answers in their place, as many as they like."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from local.functions.console import Console
from local.identity.server import IdentityServer
from local.loopback import LoopbackServer

ROOT = Path(__file__).resolve().parents[3]
Give = Callable[[dict[str, str]], Any]
"""Answer of an operation, from its path's and query's parameters; a pair of status and body for another than 200."""


class ContractApi:
    """Serves the console, an issuer and every operation. ``answers`` are by operation; ``asked`` are the requests."""

    def __init__(self) -> None:
        document = json.loads((ROOT / "openapi.json").read_text(encoding="utf-8"))
        self.answers: dict[str, Give] = {}
        self.asked: list[str] = []
        self._routes = [
            (method.upper(), re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)), operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        ]
        self._routes.sort(key=lambda route: route[1].groups)
        self._examples = document["components"]["examples"]
        self.identity = IdentityServer()
        self.identity.start()
        handler = type("Bound", (_Handler,), {"api": self})
        self._server = LoopbackServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.identity.console_at(self.url)
        self.console = Console(ROOT / "console", self.identity.issuer, "stockyard-console")
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self.identity.stop()

    def answer(self, method: str, path: str, query: dict[str, str]) -> tuple[int, Any]:
        """Status and body of a request."""
        for verb, pattern, operation in self._routes:
            match = pattern.fullmatch(path) if verb == method else None
            if match is None:
                continue
            parameters = {**query, **{name: unquote(text) for name, text in match.groupdict().items()}}
            if give := self.answers.get(operation["operationId"]):
                body = give(parameters)
                return body if isinstance(body, tuple) else (200, body)
            return self._example(operation)
        return 404, {"detail": f"There is no {method} {path}.", "status": 404}

    def example(self, name: str) -> tuple[int, Any]:
        """Status and body that the contract shows for the operation of a name."""
        return self._example(next(each for _, _, each in self._routes if each["operationId"] == name))

    def _example(self, operation: Mapping[str, Any]) -> tuple[int, Any]:
        status = min(code for code in operation["responses"] if code.startswith("2"))
        content = operation["responses"][status].get("content", {}).get("application/json", {})
        example = next(iter(content.get("examples", {}).values()), {"value": content.get("example", {})})
        if reference := example.get("$ref"):
            example = self._examples[reference.rsplit("/", 1)[-1]]
        return int(status), example["value"]


class _Handler(BaseHTTPRequestHandler):
    api: ContractApi
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, *_: Any) -> None:
        """Logs nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _serve(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        if Console.has(url.path):
            status, headers, body = self.api.console.answer(self.command, url.path, self.headers.get("If-None-Match"))
        else:
            self.api.asked.append(f"{self.command} {self.path}")
            status, document = self.api.answer(self.command, url.path, dict(parse_qsl(url.query)))
            headers, body = [("content-type", "application/json"), ("etag", '"1"')], json.dumps(document).encode()
        self.send_response(status)
        for name, text in headers:
            self.send_header(name, text)
        if status != 304:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if status != 304:
            self.wfile.write(body)
        self.wfile.flush()
