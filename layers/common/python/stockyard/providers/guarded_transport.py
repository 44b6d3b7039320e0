"""Transport of requests to addresses that callers name: what is called is the address that was looked at."""

from __future__ import annotations

import httpx

from stockyard.errors import VendorRefused
from stockyard.providers.addresses import Guard

MOST_ADDRESSES = 3
"""Addresses of one name that are tried when none can be reached."""


class GuardedTransport(httpx.BaseTransport):
    """Sends by ``inner``, to the addresses that ``guard`` lets through, one after the other until one can be reached.

    The host proves itself by its name all the same. One transport is for one host: connections are kept by address.
    Raises ``VendorRefused`` and ``VendorUnavailable`` as the guard does, before anything is sent.
    """

    def __init__(self, guard: Guard, inner: httpx.BaseTransport) -> None:
        self._guard, self._inner = guard, inner

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """See the class. A redirect is an answer like any other: nobody follows it."""
        url = request.url
        if url.scheme != "https" or not url.host:
            raise VendorRefused("The address does not begin with https.", code="address")
        failure: httpx.TransportError | None = None
        for address in self._guard.addresses(url.host, url.port or 443)[:MOST_ADDRESSES]:
            try:
                return self._inner.handle_request(_to(request, address))
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
        raise failure or AssertionError("a guard gives an address or raises")

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


def _to(request: httpx.Request, address: str) -> httpx.Request:
    """The request to that address; its header Host stays the name."""
    extensions = {**request.extensions, "sni_hostname": request.url.host}
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions=extensions,
    )
