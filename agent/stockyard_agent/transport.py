"""One HTTP request and its response: TLS only, limited in time and size, no redirects; any status is a response."""

from __future__ import annotations

import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

LIMIT = 64 * 1024 * 1024
"""The largest response, in bytes. A page of nodes or pods is much smaller."""
_CHUNK = 256 * 1024
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class Unreachable(Exception):
    """There was no usable response. The server may have carried the request out nevertheless."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request. Where ``quiet`` is given, the answer may be cut when nothing more has come for so many seconds, and
    with ``patience`` also when nothing has come at all for so long."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    quiet: float | None = None
    patience: float | None = None


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response. Header names are in lower case. ``cut``: it was ended because nothing more came."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False

    @property
    def retry_after(self) -> float:
        """Seconds to wait as ``Retry-After`` asks; 0 when it is absent or a date."""
        text = self.headers.get("retry-after", "").strip()
        return float(text) if text.isdecimal() else 0.0

    def json_object(self) -> dict[str, Any]:
        """The body as a JSON object. Raises ``Unreachable`` for anything else: another one answered."""
        try:
            parsed = json.loads(self.body)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            raise Unreachable(f"the answer ({self.status}) is no JSON object")
        return parsed


Exchange = Callable[[HttpRequest], HttpResponse]
"""Sends one request and returns its response. Raises ``Unreachable``."""


def checked(url: str) -> str:
    """The URL without its last slash. Raises ``ValueError`` unless it is HTTPS, or loopback."""
    parts = urlsplit(url)
    if not parts.hostname or (parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK)):
        raise ValueError(f"{url} is no https:// URL")
    return url.rstrip("/")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Returns a redirect as it is: following it would send the token to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


def https(
    context: ssl.SSLContext,
    *,
    timeout: float,
    proxies: Mapping[str, str] | None = None,
    monotonic: Callable[[], float] = time.monotonic,
) -> Exchange:
    """An ``Exchange`` over the network.

    ``timeout`` limits each wait, in seconds; the whole response may take four times as long. ``proxies`` is None for
    the proxies of the environment and ``{}`` for no proxy.
    """
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler(None if proxies is None else dict(proxies)),
        urllib.request.HTTPSHandler(context=context),
        _NoRedirects(),
    )

    def exchange(request: HttpRequest) -> HttpResponse:
        end = monotonic() + 4 * timeout
        native = urllib.request.Request(  # noqa: S310 - `checked` has seen the URL
            request.url, data=request.body, headers=dict(request.headers), method=request.method
        )
        try:
            with _opened(opener, native, timeout) as answer:
                headers = {name.lower(): value for name, value in answer.headers.items()}
                return HttpResponse(answer.status, headers, read_whole(answer, end, monotonic))
        except (OSError, http.client.HTTPException, ValueError) as error:
            parts = urlsplit(request.url)
            raise Unreachable(f"{request.method} {parts.netloc}{parts.path}: {described(error)}") from None

    return exchange


def _opened(opener: urllib.request.OpenerDirector, request: urllib.request.Request, timeout: float) -> Any:
    try:
        return opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        return error


def read_whole(answer: Any, end: float, monotonic: Callable[[], float]) -> bytes:
    """The body of a response. Raises ``OSError`` when it is too large, too late after ``end``, or cut off."""
    parts: list[bytes] = []
    size = 0
    while part := answer.read1(_CHUNK):
        parts.append(part)
        size += len(part)
        if size > LIMIT:
            raise OSError(f"the answer is larger than {LIMIT} bytes")
        if monotonic() > end:
            raise OSError("the answer takes too long")
    whole = answer.headers.get("Content-Length")
    if whole is not None and whole.isdecimal() and size < int(whole):
        raise OSError("the answer was cut off")
    return b"".join(parts)


def read_until_quiet(answer: Any, socket: Any, quiet: float, patience: float) -> tuple[bytes, bool]:
    """The whole lines of a response until nothing has come for ``quiet`` seconds, or at first for ``patience``; and
    whether it was cut so. Raises ``OSError`` when it is too large."""
    parts: list[bytes] = []
    size, cut = 0, False
    try:
        socket.settimeout(patience)
        while part := answer.read1(_CHUNK):
            parts.append(part)
            size += len(part)
            if size > LIMIT:
                raise OSError(f"the answer is larger than {LIMIT} bytes")
            socket.settimeout(quiet)
    except TimeoutError:
        cut = True
    body = b"".join(parts)
    return (body[: body.rfind(b"\n") + 1] if cut else body), cut


def described(error: Exception) -> str:
    """Describe an error without anything that was sent."""
    if isinstance(error, ValueError) and not isinstance(
        error, OSError
    ):  # its text repeats the header that could not be sent, which may be a token
        return "the request is malformed"
    reason = getattr(error, "reason", None)
    return f"{type(reason or error).__name__}: {reason or error}"
