"""Port to sites: places that nothing of ours reaches, and whose connector fetches what is to be done there."""

from __future__ import annotations

from typing import Protocol

from stockyard.domain.site_content import SiteCall, SiteReply

__all__ = ["WAIT_SECONDS", "Seals", "SiteCall", "SiteReply", "SiteRequests"]

WAIT_SECONDS = 20.0
"""How long somebody waits for an answer, as a request of the API waits for news."""


class SiteRequests(Protocol):
    """Requests for the sites of one tenant."""

    def ask(self, site: str, call: SiteCall, seconds: float = WAIT_SECONDS) -> SiteReply | None:
        """The answer of the site of that name, or None when none came in time: the request may be carried out all the
        same, once or twice, for some time after (``SiteRequest.ends_at``).

        ``VendorNotFound`` where the tenant has no such site, ``VendorRefused`` for a request that is too large.
        """


class Seals(Protocol):
    """Seals of texts: this installation alone opens one, and only under its own name.

    Names are ``{tenant}/{resource id}/{what}``, as those of ``Secrets``.
    """

    def seal(self, name: str, value: bytes) -> str:
        """The value, sealed."""

    def unseal(self, name: str, sealed: str) -> bytes:
        """The value again. ``VendorRefused`` for one that was sealed under another name, or changed."""
