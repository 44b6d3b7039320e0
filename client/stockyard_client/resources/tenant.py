"""Resources of a tenant beside clusters and nodes: quotas, audit, allowed node types, accounts of events,
environments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field

from stockyard_client.base_models import Model, Resource
from stockyard_client.errors import ApiError
from stockyard_client.following import Feed, OnTrouble
from stockyard_client.models import Plan
from stockyard_client.part_models import Condition
from stockyard_client.resources.base import Collection, parsed, path


class Quota(Model):
    """A limit and how much of it is used; ``limit`` is None without one, ``version`` 0 while the default holds."""

    name: str
    limit: int | None = None
    used: int = 0
    version: int = 0


class AuditRecord(Model):
    """Record of who did what, when; ``outcome`` is ``done`` or the error's type."""

    id: str
    time: str | None = None
    actor: str = ""
    action: str = ""
    subject: str = ""
    outcome: str = ""
    request_id: str = ""
    detail: str = ""


class NodeEnvironment(Resource):
    """Environment that a provider set up once for a cluster. ``phase`` is Pending, Available or Failed."""

    id: str
    cluster_id: str = ""
    provider: str = ""
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    outputs: dict[str, Any] = Field(default_factory=dict)
    created_at: str | None = None


class AllowedNodeTypes(Model):
    """The names of the node types that a tenant may use: None allows all, an empty list none."""

    allowed: tuple[str, ...] | None = None
    updated_at: str | None = None
    version: int = 0


class EventAccounts(Model):
    """The AWS accounts whose events are the tenant's requests, and the ``rights`` of these: operator or admin."""

    accounts: tuple[str, ...] = ()
    rights: str = "operator"
    updated_at: str | None = None
    version: int = 0


class Quotas(Collection):
    """Limits of the tenant."""

    name = "quotas"

    def list(self, *, page_size: int | None = None) -> Iterator[Quota]:
        """All quotas in order of name, page by page."""
        return self._pages(Quota, {}, page_size)

    def get(self, quota: str) -> Quota:
        """The quota of that name. Raises ``ApiError`` (404) when there is none."""
        for record in self.list():
            if record.name == quota:
                return record
        raise ApiError(404, "NotFound", f"There is no quota {quota}.")

    def watch(self, quota: str, *, on_trouble: OnTrouble | None = None) -> Iterator[Quota]:
        """The quota as it is, and again after each change, which is seen within 15 seconds."""
        return self._watch_by_reading(lambda: self.get(quota), on_trouble)

    def set(self, quota: str, limit: int | None) -> Quota:
        """Raises or lowers a limit, or goes back to the default (None), for the platform's role; what is used already
        stays."""
        headers = {"If-Match": f'"{self._version(quota)}"'}
        answer = self._transport.send("PUT", path(self.name, quota), body={"limit": limit}, headers=headers)
        return parsed(Quota, answer.object())

    def plan_set(self, quota: str, limit: int | None) -> Plan:
        """Plans what :meth:`set` would change."""
        return self._plan("PUT", path(self.name, quota), {"limit": limit}, {"If-Match": f'"{self._version(quota)}"'})

    def _version(self, quota: str) -> int:
        """The version of a quota; 0 of one without a limit, which no list has."""
        return next((record.version for record in self.list() if record.name == quota), 0)


class Audit(Collection):
    """Records of who did what."""

    name = "audit"

    def list(self, *, page_size: int | None = None, **query: Any) -> Iterator[AuditRecord]:
        """Records in order of time, page by page: of one ``subject`` (an id), ``actor``, ``action`` or ``outcome``,
        ``after`` a record, ``since`` a time, when given; ``order="desc"`` begins with the newest."""
        return self._pages(AuditRecord, query, page_size)

    def feed(
        self,
        *,
        after: str | None = None,
        since: str | None = None,
        newest: int = 0,
        on_trouble: OnTrouble | None = None,
        **query: Any,
    ) -> Feed:
        """Source of :meth:`follow`: ``poll()`` gives what is new, ``cursor`` is where another one goes on."""
        return self._feed("aud", query, on_trouble, after=after, since=since, newest=newest)

    def follow(self, **start: Any) -> Iterator[AuditRecord]:
        """Each record once, in order, as soon as it is there; for ever. It begins as :meth:`feed` does."""
        feed = self.feed(**start)
        while True:
            for item in feed.poll():
                yield parsed(AuditRecord, item)


class NodeEnvironments(Collection):
    """Environments that providers set up for clusters."""

    name = "node-environments"

    def list(self, *, page_size: int | None = None, **query: Any) -> Iterator[NodeEnvironment]:
        """All environments, or those of a ``cluster`` or ``provider`` (ids), page by page."""
        return self._pages(NodeEnvironment, query, page_size)

    def get(self, environment: str) -> NodeEnvironment:
        """One environment by its id."""
        return self._read(NodeEnvironment, environment)

    def watch(self, environment: str, *, on_trouble: OnTrouble | None = None) -> Iterator[NodeEnvironment]:
        """The environment as it is, and again after each change, until it is gone (:class:`ApiError`, 404)."""
        return self._watch(NodeEnvironment, path(self.name, environment), on_trouble)


class AllowedTypes(Collection):
    """The node types that the tenant may use."""

    name = "allowed-node-types"

    def get(self) -> AllowedNodeTypes:
        """Node types that may be used now."""
        return parsed(AllowedNodeTypes, self._transport.send("GET", path(self.name)).object())

    def watch(self, *, on_trouble: OnTrouble | None = None) -> Iterator[AllowedNodeTypes]:
        """Gives the node types that may be used now, and again after each change, which is seen within 15 seconds."""
        return self._watch_by_reading(self.get, on_trouble)

    def set(self, allowed: Sequence[str] | None) -> AllowedNodeTypes:
        """Allows these types, ``provider.type`` or ``provider.*``, and no others; None allows all."""
        answer = self._transport.send("PUT", path(self.name), body=_allowed(allowed), headers=self._match())
        return parsed(AllowedNodeTypes, answer.object())

    def plan_set(self, allowed: Sequence[str] | None) -> Plan:
        """Plans what :meth:`set` would change."""
        return self._plan("PUT", path(self.name), _allowed(allowed), self._match())

    def _match(self) -> dict[str, str]:
        return {"If-Match": f'"{self.get().version}"'}


def _allowed(allowed: Sequence[str] | None) -> dict[str, Any]:
    return {"allowed": None if allowed is None else [*allowed]}


class AccountsOfEvents(Collection):
    """The AWS accounts whose events are the tenant's requests."""

    name = "event-accounts"

    def get(self) -> EventAccounts:
        """The accounts as they are."""
        return parsed(EventAccounts, self._transport.send("GET", path(self.name)).object())

    def watch(self, *, on_trouble: OnTrouble | None = None) -> Iterator[EventAccounts]:
        """The accounts as they are, and again after each change, which is seen within 15 seconds."""
        return self._watch_by_reading(self.get, on_trouble)

    def set(self, accounts: Sequence[str], *, admin: bool = False) -> EventAccounts:
        """Takes the events of these accounts, and of no others, with the rights of an operator or of an ``admin``."""
        headers = {"If-Match": f'"{self.get().version}"'}
        body = {"accounts": [*accounts], "rights": "admin" if admin else "operator"}
        answer = self._transport.send("PUT", path(self.name), body=body, headers=headers)
        return parsed(EventAccounts, answer.object())
