"""Transport of httpx: a site's connector carries its requests out, with a credential of the site."""

from __future__ import annotations

import httpx

from stockyard.errors import VendorNotFound
from stockyard.ports.sites import SiteCall, SiteRequests


class SiteTransport(httpx.BaseTransport):
    """Sends to the site of this name, whatever host a URL names: the connector knows the one that it speaks to.

    ``ConnectTimeout`` when no answer comes in time, ``ConnectError`` when the connector cannot reach its host or there
    is no such site. What the site's allow-list does not have is answered 403, with a text that says so.
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
        return httpx.Response(reply.status, headers=dict(reply.headers), content=reply.body, request=request)
