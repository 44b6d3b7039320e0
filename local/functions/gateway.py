"""The HTTP API: routes of the template, its authorizer, payload format 2.0, its own answers."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from local.functions.authorizer import JwtAuthorizer, Refused, flattened
from local.functions.console import Console
from local.functions.invocation import Invocation, Invoker
from local.loopback import LoopbackServer

BODY_LIMIT = 10 * 1024 * 1024
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
_TEXT = re.compile(r"^(text/.*|application/(.*\+)?(json|xml|javascript|yaml)|application/x-www-form-urlencoded)$")


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the template: ``GET /v1/things/{id}`` or ``$default``."""

    key: str
    function: str
    authorizer: JwtAuthorizer | None = None
    pattern: re.Pattern[str] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.key != "$default":
            path = self.key.split(" ", 1)[1]
            parts = [
                f"(?P<{name}>{'.+' if greedy else '[^/]+'})" if name else re.escape(text)
                for text, name, greedy in re.findall(r"([^{]+)|\{(\w+)(\+?)\}", path)
            ]
            object.__setattr__(self, "pattern", re.compile("".join(parts)))

    def match(self, method: str, path: str) -> dict[str, str] | None:
        """The path parameters, decoded, or None when the route is for something else."""
        if self.pattern is None or self.key.split(" ", 1)[0] not in {method, "ANY"}:
            return None
        match = self.pattern.fullmatch(path)
        return None if match is None else {name: unquote(text) for name, text in match.groupdict().items()}

    @property
    def rank(self) -> tuple[int, int]:
        """Lower is more specific: fewer parameters, a named method."""
        return self.key.count("{") + 10 * self.key.count("+}"), int(self.key.startswith("ANY "))


@dataclass(frozen=True, slots=True)
class Answer:
    """The HTTP response."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


def own(status: int, message: str, *headers_beside: tuple[str, str]) -> Answer:
    """An answer of the gateway itself."""
    headers = [("content-type", "application/json"), *headers_beside]
    return Answer(status, headers, json.dumps({"message": message}).encode())


class Bucket:
    """API Gateway's token bucket: ``rate`` requests a second, ``burst`` at once; ``now()`` in seconds."""

    def __init__(self, rate: float, burst: int, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._now = rate, burst, now
        self._tokens, self._seen = float(burst), now()
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Whether one more request may pass."""
        with self._lock:
            now = self._now()
            self._tokens = min(self._burst, self._tokens + (now - self._seen) * self._rate)
            self._seen = now
            if self._tokens < 1:
                return False
            self._tokens -= 1
            return True


class Gateway:
    """Listens from the start (``url``); answers 503 until ``routes`` are set. Each answer says by the header
    ``X-Stockyard-Simulated`` what is ``simulated`` here, for programs that would look for it in vain."""

    def __init__(
        self, invoker: Invoker, port: int = 0, account: str = "111111111111", simulated: str | None = None
    ) -> None:
        self.simulated = simulated
        self._invoker = invoker
        self._account = account
        self._routes: list[Route] = []
        self._default: Route | None = None
        self._bucket: Bucket | None = None
        self._buckets: Mapping[str, Bucket] = {}
        self.console: Console | None = None
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.gateway = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True, name="gateway")
        self._thread.start()

    def serve(
        self, routes: Sequence[Route], bucket: Bucket | None = None, own_buckets: Mapping[str, Bucket] | None = None
    ) -> None:
        """Sets the routes. From now on requests are answered as often as ``bucket`` allows, and those of a route in
        ``own_buckets``, by its key, as often as that one does."""
        self._bucket, self._buckets = bucket, own_buckets or {}
        self._routes = sorted((route for route in routes if route.pattern), key=lambda route: route.rank)
        self._default = next((route for route in routes if route.key == "$default"), None)

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes, source: str) -> Answer:
        """One request through routing, authorizer, function and back."""
        url = urlsplit(target)
        if self.console is not None and self.console.has(url.path):
            return Answer(*self.console.answer(method, url.path, headers.get("if-none-match")))
        route, parameters = self._route(method, url.path)
        if route is None:
            return own(404, "Not Found") if self._routes else own(503, "Service Unavailable")
        bucket = self._buckets.get(route.key, self._bucket)
        if bucket is not None and not bucket.take():
            return own(429, "Too Many Requests")
        claims = None
        if route.authorizer:
            try:
                claims = route.authorizer.claims(headers.get("authorization"))
            except Refused as refused:
                return own(401, "Unauthorized", ("www-authenticate", refused.challenge))
        event = self._event(route, method, target, headers, body, source)
        if parameters:
            event["pathParameters"] = parameters
        if claims is not None:
            event["requestContext"]["authorizer"] = {"jwt": {"claims": flattened(claims), "scopes": None}}
        return answer_of(self._invoker.invoke(route.function, json.dumps(event).encode()))

    def _route(self, method: str, path: str) -> tuple[Route | None, dict[str, str]]:
        for route in self._routes:
            parameters = route.match(method, path)
            if parameters is not None:
                return route, parameters
        return self._default, {}

    def _event(
        self, route: Route, method: str, target: str, headers: Mapping[str, str], body: bytes, source: str
    ) -> dict[str, Any]:
        url = urlsplit(target)
        now = time.time()
        http = {
            "method": method,
            "path": unquote(url.path),
            "protocol": "HTTP/1.1",
            "sourceIp": source,
            "userAgent": headers.get("user-agent", ""),
        }
        event: dict[str, Any] = {
            "version": "2.0",
            "routeKey": route.key,
            "rawPath": unquote(url.path),
            "rawQueryString": url.query,
            "headers": {name: text for name, text in headers.items() if name != "cookie"},
            "requestContext": {
                "accountId": self._account,
                "apiId": "local",
                "domainName": headers.get("host", ""),
                "domainPrefix": headers.get("host", "").split(".")[0],
                "http": http,
                "requestId": uuid.uuid4().hex[:16],
                "routeKey": route.key,
                "stage": "$default",
                "time": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now)),
                "timeEpoch": int(now * 1000),
            },
            "isBase64Encoded": False,
        }
        query: dict[str, list[str]] = {}
        for name, text in parse_qsl(url.query, keep_blank_values=True):
            query.setdefault(name, []).append(text)
        if query:
            event["queryStringParameters"] = {name: ",".join(texts) for name, texts in query.items()}
        if "cookie" in headers:
            event["cookies"] = [part.strip() for part in headers["cookie"].split(";")]
        if body:
            event["body"], event["isBase64Encoded"] = _carried(body, headers)
        return event


def _carried(body: bytes, headers: Mapping[str, str]) -> tuple[str, bool]:
    """The body as the event carries it: text as it is, anything else in base 64."""
    kind = headers.get("content-type", "").split(";")[0].strip().lower()
    if _TEXT.match(kind) and not headers.get("content-encoding"):
        try:
            return body.decode(), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode(), True


def answer_of(invocation: Invocation) -> Answer:
    """The HTTP response that API Gateway makes from a function's answer."""
    if invocation.error:
        timed_out = b"Sandbox.Timedout" in invocation.payload
        return own(503, "Service Unavailable") if timed_out else own(500, "Internal Server Error")
    try:
        value = invocation.value()
    except ValueError:
        return own(500, "Internal Server Error")
    if not isinstance(value, dict) or "statusCode" not in value:
        return Answer(200, [("content-type", "application/json")], invocation.payload)
    try:
        status = int(value["statusCode"])
        text = value.get("body") or ""
        body = base64.b64decode(text) if value.get("isBase64Encoded") else str(text).encode()
    except (TypeError, ValueError):
        return own(500, "Internal Server Error")
    headers = {str(name).lower(): str(text) for name, text in (value.get("headers") or {}).items()}
    for name, texts in (value.get("multiValueHeaders") or {}).items():
        headers[str(name).lower()] = ",".join(map(str, texts))
    headers.setdefault("content-type", "text/plain;charset=utf-8")
    cookies = [("set-cookie", cookie) for cookie in value.get("cookies") or ()]
    return Answer(status, [*headers.items(), *cookies], body)


class _Server(LoopbackServer):
    gateway: Gateway
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Reports nothing when a caller closes its connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = 120
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Logs nothing, because the functions log their requests."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _serve(self) -> None:
        headers: dict[str, str] = {}
        for name, text in self.headers.items():
            key = name.lower()
            headers[key] = f"{headers[key]},{text}" if key in headers else text
        try:
            size = int(headers.get("content-length") or 0)
        except ValueError:
            return self._write(own(400, "Bad Request"))
        if "chunked" in headers.get("transfer-encoding", "").lower():
            self.close_connection = True
            return self._write(own(411, "Length Required"))
        if size > BODY_LIMIT:
            self.close_connection = True
            return self._write(own(413, "Request Entity Too Large"))
        body = self.rfile.read(size)
        return self._write(self.server.gateway.answer(self.command, self.path, headers, body, self.client_address[0]))

    def _write(self, answer: Answer) -> None:
        self.send_response_only(answer.status)
        for name, text in answer.headers:
            if name != "content-length":
                self.send_header(name, text.replace("\r", "").replace("\n", ""))
        if self.server.gateway.simulated:
            self.send_header("x-stockyard-simulated", self.server.gateway.simulated)
        self.send_header("date", self.date_time_string())
        if answer.status not in {204, 304}:
            self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD" and answer.status not in {204, 304}:
            self.wfile.write(answer.body)
        self.wfile.flush()
