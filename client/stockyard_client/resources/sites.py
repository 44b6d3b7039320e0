"""Sites as Python calls."""

from __future__ import annotations

from collections.abc import Iterator

from stockyard_client.following import OnTrouble
from stockyard_client.models import Plan
from stockyard_client.resources.base import Body, Collection, parsed, path
from stockyard_client.site_models import Site, SiteCredentials


class Sites(Collection):
    """Sites."""

    name = "sites"

    def create(self, body: Body, *, idempotency_key: str | None = None) -> Site:
        """Makes a site."""
        answer = self._transport.send("POST", path(self.name), body=body, idempotency_key=idempotency_key)
        return self._record(Site, answer)

    def plan_create(self, body: Body) -> Plan:
        """Plans what :meth:`create` would do."""
        return self._plan("POST", path(self.name), body)

    def list(self, *, page_size: int | None = None) -> Iterator[Site]:
        """All sites of the tenant, page by page."""
        return self._pages(Site, {}, page_size)

    def get(self, site: str) -> Site:
        """One site by id or name."""
        return self._read(Site, site)

    def watch(self, site: str, *, on_trouble: OnTrouble | None = None) -> Iterator[Site]:
        """The site as it is, and again after each change, until it is gone (:class:`ApiError`, 404)."""
        return self._watch(Site, path(self.name, site), on_trouble)

    def delete(self, site: str) -> None:
        """Removes a site; 409 while accounts are reached through it."""
        self._transport.send("DELETE", path(self.name, site))

    def plan_delete(self, site: str) -> Plan:
        """Plans what :meth:`delete` would do."""
        return self._plan("DELETE", path(self.name, site))

    def renew_credentials(self, site: str) -> SiteCredentials:
        """Makes new credentials of the site's connector; those before end."""
        return parsed(SiteCredentials, self._transport.send("POST", path(self.name, site, "credentials")).object())

    def manifest(self, site: str, *, form: str = "kubernetes") -> str:
        """The text that installs the site's connector: ``kubernetes`` or ``systemd``."""
        answer = self._transport.send("GET", path(self.name, site, "manifest"), query={"form": form}).object()
        return str(answer.get("text", ""))
