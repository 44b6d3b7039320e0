"""The one host of the site: requests are checked against the allow-list, and get the site's credential here."""

from __future__ import annotations

import json
from collections.abc import Callable

from ..stockyard_agent.transport import Exchange, HttpRequest, Unreachable
from .allowed import AllowList, NotAllowed
from .site_api import GivenRequest, SiteAnswer

MOST_BYTES = 3_000_000
"""The largest body of an answer that can be brought."""
ANSWER_HEADERS = frozenset({"content-type", "etag", "last-modified", "retry-after", "warning"})
_HEADERS = {"Accept-Encoding": "identity", "User-Agent": "stockyard-site"}
REFUSED, REFUSAL = 403, "stockyard-site"
"""Status and header of a refusal of the connector's own. No host's answer keeps that header."""


class Target:
    """``allowed`` gives the list of now: its owner may change the file at any time. ``token`` gives the token of now,
    or None where a certificate of the connection says who this is."""

    def __init__(
        self, server: str, exchange: Exchange, token: Callable[[], str | None], allowed: Callable[[], AllowList]
    ) -> None:
        self._server, self._exchange, self._token, self._allowed = server, exchange, token, allowed

    def carry_out(self, request: GivenRequest) -> SiteAnswer:
        """The answer of the host, or why there is none. What the list does not have never leaves this method."""
        try:
            self._allowed().check(request.method, request.target, request.headers, request.body)
            headers = {**{name.title(): value for name, value in request.headers.items()}, **_HEADERS}
            if (token := self._token()) is not None:
                headers["Authorization"] = f"Bearer {token}"
        except NotAllowed as refused:
            return _refusal(request.id, str(refused))
        except (OSError, ValueError) as error:
            # the text of a file that cannot be read is not told: it may be a secret's
            return _failure(request.id, f"the connector's own files cannot be read: {type(error).__name__}")
        body = request.body if request.body or request.method not in {"GET", "HEAD", "DELETE"} else None
        try:
            response = self._exchange(HttpRequest(request.method, self._server + request.target, headers, body))
        except Unreachable as error:
            return _failure(request.id, f"the host does not answer: {error}")
        if 300 <= response.status < 400 and response.status != 304:
            return _failure(request.id, f"the host answers {response.status}: a redirect is not followed")
        if len(response.body) > MOST_BYTES:
            size = len(response.body)
            return _failure(request.id, f"the answer has {size} bytes; through a site go at most {MOST_BYTES}")
        answered = {name: value for name, value in response.headers.items() if name in ANSWER_HEADERS}
        return SiteAnswer(request.id, response.status, answered, response.body)


def _refusal(request_id: str, text: str) -> SiteAnswer:
    """A refusal of the connector, in the form of Kubernetes."""
    message = f"the site's connector refused: {text}"
    document = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "Forbidden",
        "message": message,
        "code": REFUSED,
    }
    headers = {"content-type": "application/json", REFUSAL: "refused"}
    return SiteAnswer(request_id, REFUSED, headers, json.dumps(document).encode())


def _failure(request_id: str, text: str) -> SiteAnswer:
    return SiteAnswer(request_id, 0, {}, b"", text[:1000])
