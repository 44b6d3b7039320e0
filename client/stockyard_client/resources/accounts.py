"""Cloud accounts of a tenant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stockyard_client.models import CloudAccount, Plan
from stockyard_client.resources.base import Body, Collection, path

if TYPE_CHECKING:
    from stockyard_client.following import OnTrouble


class Accounts(Collection):
    """Cloud accounts."""

    name = "cloud-accounts"

    def create(self, body: Body, *, idempotency_key: str | None = None) -> CloudAccount:
        """Registers an account."""
        answer = self._transport.send("POST", path(self.name), body=body, idempotency_key=idempotency_key)
        return self._record(CloudAccount, answer)

    def plan_create(self, body: Body) -> Plan:
        """Plans what :meth:`create` would do."""
        return self._plan("POST", path(self.name), body)

    def list(self, *, page_size: int | None = None, **query: Any) -> Iterator[CloudAccount]:
        """All accounts of the tenant, page by page."""
        return self._pages(CloudAccount, query, page_size)

    def get(self, account: str | int) -> CloudAccount:
        """One account."""
        return self._read(CloudAccount, account)

    def watch(self, account: str | int, *, on_trouble: OnTrouble | None = None) -> Iterator[CloudAccount]:
        """The account as it is, and again after each change, until it is gone (:class:`ApiError`, 404)."""
        return self._watch(CloudAccount, path(self.name, account), on_trouble)

    def update(self, account: CloudAccount | str | int, changes: Body) -> CloudAccount:
        """A JSON merge patch, guarded by the record's ETag (412 when it has changed)."""
        return self._update(CloudAccount, account, changes)

    def plan_update(self, account: CloudAccount, changes: Body) -> Plan:
        """Plans what :meth:`update` would change."""
        return self._plan_update(account, changes)

    def delete(self, account: str | int) -> None:
        """Forgets an account; 409 while clusters use it."""
        self._transport.send("DELETE", path(self.name, account))

    def plan_delete(self, account: str | int) -> Plan:
        """Plans what :meth:`delete` would do."""
        return self._plan("DELETE", path(self.name, account))

    def template(self, account: str | int, *, runs: bool = False) -> Any:
        """The CloudFormation template the account's owner deploys: an object, or text. ``runs``: the one for programs
        of node providers."""
        query = {"runs": "true"} if runs else None
        return self._transport.send("GET", path(self.name, account, "template"), query=query).body

    def verify(self, account: str | int) -> CloudAccount:
        """Proves that the role works; the record says how that went."""
        return self._record(CloudAccount, self._transport.send("POST", path(self.name, account, "verify")))
