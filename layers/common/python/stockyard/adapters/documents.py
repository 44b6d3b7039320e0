"""Public documents over HTTPS (``ports.services.Documents``), from few hosts: who could name any could have us ask
for what is inside our own network."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stockyard.errors import VendorRefused, VendorTimeout, VendorUnavailable

if TYPE_CHECKING:
    import httpx

HOSTS = frozenset({"github.com", "raw.githubusercontent.com"})
REDIRECTED = (*sorted(HOSTS), "objects.githubusercontent.com", "release-assets.githubusercontent.com")
"""Where an answer of these may point to."""
MAX_BYTES = 2 * 1024 * 1024
_SECONDS = 8.0
_HOPS = 3


class HttpsDocuments:
    """``transport`` replaces the network in tests."""

    def __init__(self, transport: httpx.BaseTransport | None = None) -> None:
        self._transport = transport

    def fetch(self, url: str) -> bytes:
        """See ``ports.services.Documents.fetch``."""
        import httpx  # kept out of cold starts

        try:
            with httpx.Client(
                transport=self._transport, timeout=_SECONDS, follow_redirects=False, trust_env=False
            ) as client:
                for hop in range(_HOPS):
                    _check(url, HOSTS if hop == 0 else frozenset(REDIRECTED))
                    with client.stream("GET", url) as answer:
                        if answer.is_redirect:
                            url = str(answer.next_request.url) if answer.next_request else ""
                            continue
                        return _body(answer)
        except httpx.TimeoutException as error:
            raise VendorTimeout("no answer in time", code=type(error).__name__) from None
        except httpx.HTTPError as error:
            raise VendorUnavailable("the host cannot be reached", code=type(error).__name__) from None
        raise VendorRefused("it is moved too often", code="Redirects")


def _check(url: str, hosts: frozenset[str]) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme == "https" and parts.hostname in hosts and parts.port in (None, 443) and not parts.username
    except ValueError:
        good = False
    if not good:
        raise VendorRefused(f"only https addresses at {' and '.join(sorted(HOSTS))} are fetched", code="Address")


def _body(answer: httpx.Response) -> bytes:
    if answer.status_code >= 500:
        raise VendorUnavailable(f"the answer is {answer.status_code}", code=str(answer.status_code))
    if answer.status_code != 200:
        raise VendorRefused(f"the answer is {answer.status_code}", code=str(answer.status_code))
    data = b""
    for chunk in answer.iter_bytes():
        data += chunk
        if len(data) > MAX_BYTES:
            raise VendorRefused(f"it has more than {MAX_BYTES} bytes", code="Size")
    return data
