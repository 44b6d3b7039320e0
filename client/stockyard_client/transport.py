"""One call of the API: token, time limit, retry, and the translation of refusals into :class:`ApiError`."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import stamina

from stockyard_client.errors import ApiError, ConnectionFailed, FieldProblem, LoginFailed, UnexpectedAnswer
from stockyard_client.version import VERSION

ATTEMPTS = 5
RETRY_SECONDS = 60.0
LONGEST_WAIT = 20
"""Seconds that the API lets a request wait for news."""
WAIT_MARGIN = 10.0
"""Seconds that the answer to such a request may take beyond its wait."""
LONGEST_RETRY_AFTER = 30.0
SIMULATED = "X-Stockyard-Simulated"
"""The header by which a local cloud says what it only imitates."""
UNREACHED_PAUSE = 0.3
"""Seconds between attempts where nobody listens: a server that starts is found, and a wrong URL is said soon."""
_GATEWAY_TYPES = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    413: "BodyTooLarge",
    429: "Throttled",
    500: "Internal",
    503: "ServiceUnavailable",
    504: "GatewayTimeout",
}
_DESCRIPTION = re.compile(r'error_description="([^"]+)"')
_RETRYABLE_STATUS = frozenset({429, 502, 503, 504})
PAST_PROXIES: Mapping[str, None] = {"all://127.0.0.1": None, "all://localhost": None, "all://[::1]": None}
"""An API or an issuer on this machine is reached through no proxy, whatever ``HTTP_PROXY`` says."""

Token = str | Callable[[], str | None] | None


@dataclass(frozen=True, slots=True)
class Answer:
    """A good answer: its status, headers and decoded body (text when it is not JSON, None when empty)."""

    status: int
    headers: httpx.Headers
    body: Any

    @property
    def retry_after(self) -> float:
        """Seconds after which to ask again, where the API did not let the request wait; else 0."""
        return _seconds(self.headers.get("Retry-After")) or 0.0

    def object(self) -> dict[str, Any]:
        """The body, which must be a JSON object. Raises :class:`UnexpectedAnswer` otherwise."""
        if not isinstance(self.body, dict):
            raise UnexpectedAnswer("the answer is not a JSON object: is the URL that of a Stockyard API?")
        return self.body


class Transport:
    """Sends requests. Only calls that may be repeated are: GET, DELETE, and POST, which carries its own key.

    ``simulated`` is what the API has said that it only imitates: ``kubernetes``, or nothing.
    """

    def __init__(
        self,
        url: str,
        token: Token,
        *,
        tenant: str | None = None,
        timeout: float = 30.0,
        transport: httpx.BaseTransport | None = None,
        new_key: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self.simulated = ""
        self._token = token
        self._new_key = new_key
        self.can_wait = True
        """Whether the API lets requests wait, as far as is known."""
        self._http = httpx.Client(
            base_url=url.rstrip("/"),
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            transport=transport,
            mounts=PAST_PROXIES,
            headers={
                "Accept": "application/json",
                "User-Agent": f"stockyard-client/{VERSION}",
                **({"X-Stockyard-Tenant": tenant} if tenant else {}),
            },
        )
        self._retrying = stamina.RetryingCaller(attempts=ATTEMPTS, timeout=RETRY_SECONDS)

    def close(self) -> None:
        """Gives the connections back."""
        self._http.close()

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        wait: int = 0,
        retry: bool = True,
    ) -> Answer:
        """The good answer to a request, a 304 among them. Raises :class:`ApiError` or :class:`ConnectionFailed`.

        ``wait`` is how many seconds the API may take until there is news. Without ``retry`` it is sent once. A POST
        gets an ``Idempotency-Key`` when none is given; all its repetitions carry the same one.
        """
        sent = dict(headers or {})
        if method == "POST":
            sent["Idempotency-Key"] = idempotency_key or self._new_key()
        parameters = {
            name: value for name, value in {**(query or {}), "wait": wait or None}.items() if value is not None
        }

        def once() -> Answer:
            # no arguments: stamina logs those of the function it calls, and the body may hold a secret
            return self._once(method, path, parameters, body, sent, wait)

        if retry and method in {"GET", "DELETE", "POST"}:
            return self._retrying(backoff, once)
        return once()

    def _once(
        self, method: str, path: str, query: Mapping[str, Any], body: Any, headers: Mapping[str, str], wait: int
    ) -> Answer:
        sent = dict(headers)
        token = self._token() if callable(self._token) else self._token
        if token:
            sent["Authorization"] = f"Bearer {_checked(token)}"
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        try:
            limits = self._http.timeout
            if wait and limits.read is not None:
                seconds = max(limits.read, wait + WAIT_MARGIN)
                limits = httpx.Timeout(connect=limits.connect, read=seconds, write=limits.write, pool=limits.pool)
            response = self._http.request(method, path, params=query, json=body, headers=sent, timeout=limits)
        except httpx.HTTPError as error:
            host = self._http.base_url
            text = f"no answer from {host.scheme}://{host.netloc.decode()}: {_cause(error)}"
            unreached, final = isinstance(error, httpx.ConnectError), text.endswith(_NO_HOST)
            raise ConnectionFailed(text, unreached=unreached, final=final) from error
        self.simulated = response.headers.get(SIMULATED, self.simulated)
        if response.is_success or response.status_code == 304:
            return Answer(response.status_code, response.headers, _decoded(response))
        raise api_error(response)


def _checked(token: str) -> str:
    """The token without space around it. Raises :class:`LoginFailed` for one that no header can carry: the words of the
    HTTP library would show it."""
    trimmed = token.strip()
    if not trimmed.isascii() or not trimmed.isprintable() or " " in trimmed:
        raise LoginFailed("the token has a character that no token has, such as a space or the end of a line")
    return trimmed


def api_error(response: httpx.Response) -> ApiError:
    """The refusal in ``response``: a problem document, or the gateway's ``{"message"}``, or nothing readable."""
    try:
        body = response.json()
    except ValueError:
        body = {}
    problem: dict[str, Any] = body if isinstance(body, dict) else {}
    status = response.status_code
    problems = problem.get("errors")
    errors = [
        FieldProblem(str(item.get("pointer", "")), str(item.get("detail", "")))
        for item in (problems if isinstance(problems, list) else [])
        if isinstance(item, dict)
    ]
    detail = problem.get("detail") or _challenge(response) or problem.get("message") or problem.get("title")
    return ApiError(
        status,
        str(problem.get("error_type") or _GATEWAY_TYPES.get(status, f"Http{status}")),
        str(detail or response.reason_phrase),
        errors=errors,
        request_id=problem.get("request_id") or response.headers.get("apigw-requestid"),
        retryable=bool(problem.get("retryable", status in _RETRYABLE_STATUS)),
        retry_after=_seconds(response.headers.get("Retry-After")),
    )


def _challenge(response: httpx.Response) -> str:
    """Reason why the gateway refused the token, in its own words; empty where it does not say so."""
    match = _DESCRIPTION.search(response.headers.get("WWW-Authenticate", "")) if response.status_code == 401 else None
    return f"{match[1][:1].upper()}{match[1][1:]}." if match else ""


def backoff(error: Exception) -> bool | float:
    """Whether to try again, or after how many seconds (stamina's hook): as ``Retry-After`` says, at most 30, and soon
    where nobody listens."""
    if isinstance(error, ConnectionFailed):
        return not error.final and (UNREACHED_PAUSE if error.unreached else True)
    if not isinstance(error, ApiError) or not error.retryable:
        return False
    if error.retry_after is None:
        return True
    return min(error.retry_after, LONGEST_RETRY_AFTER)


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text is not None else None
    except ValueError:
        return None


def _decoded(response: httpx.Response) -> Any:
    if not response.content:
        return None
    if "json" not in response.headers.get("Content-Type", ""):
        return response.text
    try:
        return response.json()
    except ValueError:
        raise UnexpectedAnswer("the answer says it is JSON and is not") from None


def _cause(error: Exception) -> str:
    """Cause of an error, in words for people."""
    if isinstance(error, httpx.TimeoutException):
        return "it took too long"
    text = _NUMBER.sub("", str(error)).strip() or "the connection broke"
    return _WORDS.get(text, text[:1].lower() + text[1:])


_NUMBER = re.compile(r"\[(?:Errno -?\d+|SSL: \w+)\] |\(_ssl\.c:\d+\)")
"""What the interpreter writes around a cause."""
_NO_HOST = "there is no host of that name"
_WORDS = {
    "Name or service not known": _NO_HOST,
    "nodename nor servname provided, or not known": _NO_HOST,
    "No address associated with hostname": _NO_HOST,
    "Temporary failure in name resolution": "the name of the host cannot be resolved now",
    "All connection attempts failed": "the connection was refused",
}
