"""An ``Exchange`` with one server over one connection that stays open: the Kubernetes API is asked each second."""

from __future__ import annotations

import http.client
import select
import ssl
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from .transport import HttpRequest, HttpResponse, Unreachable, described, read_until_quiet, read_whole

_REPEATABLE = frozenset({"GET", "PUT", "DELETE"})
"""Methods whose second sending changes nothing more. A connection may end after a request was carried out."""
_CLOSED = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError)


class KeptConnection:
    """``timeout`` limits each wait, in seconds; the whole response may take four times as long. Not for threads.

    A connection that the server has closed meanwhile is opened again before a request is sent. When it ends while a
    request is under way, the request is sent once more if that is harmless, and is ``Unreachable`` otherwise.
    """

    def __init__(
        self, context: ssl.SSLContext, *, timeout: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._context, self._timeout, self._monotonic = context, timeout, monotonic
        self._origin = ""
        self._connection: http.client.HTTPConnection | None = None

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """See ``transport.Exchange``."""
        parts = urlsplit(request.url)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        try:
            used_before = self._ready(f"{parts.scheme}://{parts.netloc}")
            try:
                return self._exchange(request, target)
            except _CLOSED:
                if not used_before or request.method not in _REPEATABLE:
                    raise
            self.close()
            self._ready(f"{parts.scheme}://{parts.netloc}")
            return self._exchange(request, target)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise Unreachable(f"{request.method} {parts.netloc}{parts.path}: {described(error)}") from None
        except BaseException:
            self.close()  # what is half read would be taken for the next answer
            raise

    def close(self) -> None:
        """End the connection. The next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ready(self, origin: str) -> bool:
        """Have a connection to the server; whether it was there already."""
        if self._connection is not None and (origin != self._origin or _is_over(self._connection)):
            self.close()
        if self._connection is not None:
            return True
        parts = urlsplit(origin)
        if parts.scheme == "https":
            self._connection = http.client.HTTPSConnection(parts.netloc, timeout=self._timeout, context=self._context)
        else:
            self._connection = http.client.HTTPConnection(parts.netloc, timeout=self._timeout)
        self._origin = origin
        return False

    def _exchange(self, request: HttpRequest, target: str) -> HttpResponse:
        connection = self._connection
        if connection is None:
            raise ValueError("there is no connection")
        end = self._monotonic() + 4 * self._timeout
        connection.request(request.method, target, body=request.body, headers=dict(request.headers))
        socket = connection.sock
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.headers.items()}
        if request.quiet is not None and 200 <= answer.status < 300:
            body, cut = read_until_quiet(answer, socket, request.quiet, request.patience or self._timeout)
            if cut:
                self.close()  # what comes later is asked for anew
                return HttpResponse(answer.status, headers, body, cut=True)
            socket.settimeout(self._timeout)
        else:
            body = read_whole(answer, end, self._monotonic)
        answer.close()  # the connection stays
        if answer.will_close:
            self.close()
        return HttpResponse(answer.status, headers, body)


def _is_over(connection: http.client.HTTPConnection) -> bool:
    """Whether an idle connection has something to read: its end, or what nobody has asked for."""
    if connection.sock is None:
        return True
    return bool(select.select([connection.sock], [], [], 0)[0])
