"""Calls of Stockyard's API, with a token that a client of its realm gets by client credentials."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from stockyard_stack_resources.errors import Busy, Refused, StackResourceError
from stockyard_stack_resources.proofs import Proof

SECONDS = 20
"""Limit of one exchange; :data:`stockyard_stack_resources.life.SETTLING` is longer."""
SCOPE = "openid organization"
"""By the second one the realm says of which tenant the client is."""
_EARLY = 30
"""Seconds before its end at which a token is not used any more."""
_LONGEST_TEXT = 700
"""Characters of a refusal that CloudFormation is told: its answer has 4,096 bytes in all."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer to one HTTP request; names of ``headers`` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: Any


Exchange = Callable[[str, str, Mapping[str, str], bytes | None], Reply]
"""(method, URL, headers, body) -> the answer, of any status. ``Busy`` where there is none."""


def exchange(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Reply:
    """One HTTPS request by the standard library. See ``Exchange``."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "localhost"):
        raise StackResourceError(f"{parts.scheme}://{parts.netloc} is not reached by https")
    request = urllib.request.Request(url, body, dict(headers), method=method)  # noqa: S310 - its scheme is known
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
            return _reply(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return _reply(error.code, error.headers, error.read())
    except OSError as error:
        raise Busy(f"{parts.netloc} is not reached: {error}") from error


def _reply(status: int, headers: Any, content: bytes) -> Reply:
    try:
        body = json.loads(content) if content else None
    except ValueError:
        body = None
    return Reply(status, {name.lower(): value for name, value in headers.items()}, body)


@dataclass(slots=True)
class Login:
    """Tokens of a client of the realm ``issuer``, which ``proof`` proves."""

    issuer: str
    proof: Proof
    send: Exchange = exchange
    clock: Callable[[], float] = time.time
    _endpoint: str | None = field(init=False, default=None)
    _token: str | None = field(init=False, default=None)
    _ends: float = field(init=False, default=0.0)

    def token(self, *, fresh: bool = False) -> str:
        """A token that is good for half a minute at least; ``fresh``: a new one, of the secret as it is now."""
        if fresh or self._token is None or self.clock() > self._ends - _EARLY:
            self._token, self._ends = self._new_token()
        return self._token

    def _new_token(self) -> tuple[str, float]:
        proof = self.proof()
        if self._endpoint is None:
            discovery = self.send("GET", f"{self.issuer.rstrip('/')}/.well-known/openid-configuration", {}, None)
            if discovery.status >= 500:
                raise Busy(f"the issuer answers {discovery.status}")
            if discovery.status != 200 or not isinstance(discovery.body, dict):
                raise StackResourceError(f"{self.issuer} is no issuer: it answers {discovery.status}")
            self._endpoint = str(discovery.body["token_endpoint"])
        form = {"grant_type": "client_credentials", "scope": SCOPE, **proof}
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = self.send("POST", self._endpoint, headers, urllib.parse.urlencode(form).encode())
        if answer.status >= 500 or answer.status == 429:
            raise Busy(f"the issuer answers {answer.status}")
        if answer.status != 200 or not isinstance(answer.body, dict):
            word = answer.body.get("error", "") if isinstance(answer.body, dict) else ""
            client = f"the client {proof['client_id']}" if "client_id" in proof else "the role of the handler"
            raise StackResourceError(f"the issuer refuses {client}: {word or answer.status}")
        return str(answer.body["access_token"]), self.clock() + float(answer.body.get("expires_in", 60))


@dataclass(slots=True)
class Api:
    """Stockyard's API at ``url``, below which ``/v1/`` is."""

    url: str
    login: Login
    send: Exchange = exchange

    def get(self, path: str) -> Reply | None:
        """Answer for ``/v1/path``; None where nothing is."""
        try:
            return self.call("GET", path)
        except Refused as refusal:
            if refusal.status == 404:
                return None
            raise

    def every(self, path: str) -> Iterator[Mapping[str, Any]]:
        """All records of the collection ``/v1/path``; none where the collection is gone."""
        query = "page_size=200"
        while (page := self.get(f"{path}?{query}")) is not None:
            yield from page.body["items"]
            if page.body.get("next_page_token") is None:
                return
            query = urllib.parse.urlencode({"page_size": 200, "page_token": page.body["next_page_token"]})

    def call(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, version: str | None = None
    ) -> Reply:
        """Calls the API. ``key`` is an Idempotency-Key, ``version`` the ETag that a change is for.

        Raises ``Refused`` for what will not be granted, ``Busy`` for what may be.
        """
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = f"application/{'merge-patch+' if method == 'PATCH' else ''}json"
        if key is not None:
            headers["Idempotency-Key"] = key
        if version is not None:
            headers["If-Match"] = version
        content = None if body is None else json.dumps(body).encode()
        url = f"{self.url.rstrip('/')}/v1/{path}"
        for fresh in (False, True):
            reply = self.send(
                method, url, {**headers, "Authorization": f"Bearer {self.login.token(fresh=fresh)}"}, content
            )
            if reply.status != 401:
                break
        if reply.status < 400:
            return reply
        raise _error(reply)


def _error(reply: Reply) -> StackResourceError:
    problem = reply.body if isinstance(reply.body, dict) else {}
    error_type = str(problem.get("error_type", ""))
    faults = [f"{fault.get('pointer') or 'body'}: {fault.get('detail')}" for fault in problem.get("errors") or ()]
    detail = str(problem.get("detail") or f"Stockyard answers {reply.status}.")
    text = " ".join([detail, *(fault for fault in faults if fault not in detail)])
    text = text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]} ..."
    request = problem.get("request_id")
    if request:
        text = f"{text} (request {request})"
    if reply.status in (412, 429) or error_type == "Conflict" or reply.status >= 500 or problem.get("retryable"):
        return Busy(text)
    return Refused(text, reply.status, error_type)
