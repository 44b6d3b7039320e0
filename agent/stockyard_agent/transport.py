"""One HTTP exchange: by TLS, bounded in time and size, without redirects; every status is an answer."""

from __future__ import annotations

import http.client
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

LIMIT = 64 * 1024 * 1024
"""Bytes of an answer. A page of nodes or pods stays far below."""
_CHUNK = 256 * 1024
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class Unreachable(Exception):
    """No answer that can be used. The request may have been carried out."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def retry_after(self) -> float:
        """Seconds that the answer asks to wait; 0 when it does not say, or says it as a date."""
        text = self.headers.get("retry-after", "").strip()
        return float(text) if text.isdecimal() else 0.0


Exchange = Callable[[Outgoing], Reply]
"""Carries one request out. Raises ``Unreachable``."""


def checked(url: str) -> str:
    """The URL without its last slash. Raises ``ValueError`` unless it is HTTPS, or loopback."""
    parts = urlsplit(url)
    if not parts.hostname or (parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK)):
        raise ValueError(f"{url} is no https:// URL")
    return url.rstrip("/")


class _Stay(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer like any other: it would carry the token to another place."""

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

    ``timeout`` (seconds) holds for each wait and, four times, for the whole answer. ``proxies`` None: those of the
    environment; ``{}``: none.
    """
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler(None if proxies is None else dict(proxies)),
        urllib.request.HTTPSHandler(context=context),
        _Stay(),
    )

    def exchange(outgoing: Outgoing) -> Reply:
        end = monotonic() + 4 * timeout
        request = urllib.request.Request(  # noqa: S310 - `checked` has seen the URL
            outgoing.url, data=outgoing.body, headers=dict(outgoing.headers), method=outgoing.method
        )
        try:
            with _opened(opener, request, timeout) as answer:
                headers = {name.lower(): value for name, value in answer.headers.items()}
                return Reply(answer.status, headers, _read(answer, end, monotonic))
        except (OSError, http.client.HTTPException, ValueError) as error:
            where = urlsplit(outgoing.url)
            raise Unreachable(f"{outgoing.method} {where.netloc}{where.path}: {_told(error)}") from None

    return exchange


def _opened(opener: urllib.request.OpenerDirector, request: urllib.request.Request, timeout: float) -> Any:
    try:
        return opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        return error


def _read(answer: Any, end: float, monotonic: Callable[[], float]) -> bytes:
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


def _told(error: Exception) -> str:
    if isinstance(error, ValueError):  # its text repeats what could not be sent, which may be a token
        return "the request is malformed"
    reason = getattr(error, "reason", None)
    return f"{type(reason or error).__name__}: {reason or error}"
