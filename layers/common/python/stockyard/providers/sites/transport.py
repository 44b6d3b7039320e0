"""Transport of httpx: a site's connector carries its requests out, with a credential of the site."""

from __future__ import annotations

import json

import httpx

from stockyard.domain.site_content import REFUSAL
from stockyard.errors import PermissionDenied, VendorNotFound
from stockyard.ports.sites import SiteCall, SiteRequests

HINT = "The site's owner adds a line to the allow-list of its connector."


class SiteTransport(httpx.BaseTransport):
    """Sends to the site of this name, whatever host a URL names: the connector knows the one that it speaks to.

    ``ConnectTimeout`` when no answer comes in time, ``ConnectError`` when the connector cannot reach its host or there
    is no such site. ``PermissionDenied`` for what the site's allow-list does not have, with the connector's own text.
    """

    def __init__(self, requests: SiteRequests, site: str) -> None:
        self._requests, self._site = requests, site

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The answer. Only a few headers go along: no credential of ours, and no other user."""
        call = SiteCall(request.method, request.url.raw_path.decode("ascii"), dict(request.headers), request.read())
        try:
            reply = self._requests.ask(self._site, call)
        except VendorNotFound as missing:
            raise httpx.ConnectError(missing.detail, request=request) from None
        if reply is None:
            raise httpx.ConnectTimeout(f"site {self._site} has not answered in time", request=request)
        if reply.failure is not None:
            raise httpx.ConnectError(f"site {self._site}: {reply.failure}", request=request)
        if REFUSAL in reply.headers:
            message = _message(reply.body)
            raise PermissionDenied(f"site {self._site}: {message}", code=str(reply.status), hint=HINT)
        return httpx.Response(reply.status, headers=dict(reply.headers), content=reply.body, request=request)


def _message(body: bytes) -> str:
    """The text of a refusal, which the connector has written."""
    try:
        return str(json.loads(body)["message"])[:1000]
    except (ValueError, KeyError, TypeError):
        return "its connector refused the request"
