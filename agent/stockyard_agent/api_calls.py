"""Calls to Stockyard with an access token of a client of the realm: the token is renewed, large bodies are packed."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from . import VERSION
from .transport import Exchange, HttpRequest, HttpResponse, Unreachable

_GZIP_ABOVE = 1024
_MARGIN = 60.0
_TEXT = 300


class StockyardRefused(Exception):
    """Stockyard or the identity server refused a request. ``retry_after`` is in seconds, 0 when unknown."""

    def __init__(self, message: str, status: int, retry_after: float) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


class ApiCalls:
    """Calls below ``url``. ``credentials`` returns the client's id and secret. It is called at each renewal, so that it
    may change. ``owner`` says in refusals whose client it is."""

    def __init__(
        self,
        *,
        url: str,
        token_url: str,
        owner: str,
        exchange: Exchange,
        credentials: Callable[[], tuple[str, str]],
        monotonic: Callable[[], float],
    ) -> None:
        self._url, self._token_url, self._owner = url, token_url, owner
        self._exchange, self._credentials, self._monotonic = exchange, credentials, monotonic
        self._token, self._good_until = "", 0.0

    def answer(self, method: str, route: str, body: bytes | None = None) -> dict[str, Any]:
        """The object of the answer. A rejected token is renewed once. Raises ``StockyardRefused``, ``Unreachable``."""
        response = self._send(method, route, body)
        if response.status == 401:
            self._token = ""
            response = self._send(method, route, body)
        if not 200 <= response.status < 300:
            raise StockyardRefused(
                f"Stockyard answered {response.status}{_detail(response)}", response.status, response.retry_after
            )
        return response.json_object()

    def _send(self, method: str, route: str, body: bytes | None) -> HttpResponse:
        headers = {
            "Accept": "application/json",
            "Authorization": "Bearer " + self._bearer(),
            "User-Agent": "stockyard-agent/" + VERSION,
        }
        if body is not None:
            headers["Content-Type"] = "application/json"
        if body is not None and len(body) > _GZIP_ABOVE:
            # Announced as content type and not as content encoding, so that API Gateway keeps the bytes as they are.
            headers["Content-Type"] = "application/gzip"
            body = gzip.compress(body, mtime=0)
        return self._exchange(HttpRequest(method, f"{self._url}/{route}", headers, body))

    def _bearer(self) -> str:
        if self._token and self._monotonic() < self._good_until:
            return self._token
        client_id, client_secret = self._credentials()
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        requested_at = self._monotonic()
        response = self._exchange(HttpRequest("POST", self._token_url, headers, urlencode(form).encode()))
        if response.status != 200:
            text = f"The identity server answered {response.status} to the {self._owner}'s client"
            raise StockyardRefused(text, response.status, response.retry_after)
        content = response.json_object()
        token, seconds = content.get("access_token"), content.get("expires_in")
        if not isinstance(token, str) or not token or not isinstance(seconds, (int, float)):
            raise Unreachable("the identity server's answer has no access_token with expires_in")
        self._token, self._good_until = token, requested_at + seconds - min(_MARGIN, seconds / 4)
        return token


def _detail(response: HttpResponse) -> str:
    """The text of a problem document, shortened."""
    try:
        problem = response.json_object()
    except Unreachable:
        return ""
    text = problem.get("detail") or problem.get("title") or problem.get("message")
    return f": {str(text)[:_TEXT]}" if text else ""
