"""Ports to the table: records of one tenant, and what spans tenants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar, overload

from stockyard.domain.records import NodeClaim, Record
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.writes import Write

R = TypeVar("R", bound=Record)
A = TypeVar("A", bound=Record)
B = TypeVar("B", bound=Record)
C = TypeVar("C", bound=Record)


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """Some records in order of id, and the id to go on after (None at the end)."""

    items: list[R]
    next_id: str | None
    read: int = 0
    """How many records were looked at for it, where a filter left some out."""


@dataclass(frozen=True, slots=True)
class RecordChange:
    """A record as a write has left it, as the table tells who follows it. The removal of a record is none."""

    tenant: str
    kind: str
    """The name of the record's class."""
    id: str
    created: bool
    """Whether the write made it; else it was there before."""
    status: str
    """Empty for kinds that have none."""
    lowered: bool
    """Of a counter: whether the write made it less."""
    position: str
    """Where in the stream it stands."""
    record: Callable[[], Record]
    """Reads the whole record. Raises ``StoreError`` for a kind that this release does not know."""


class Store(Protocol):
    """The records of one tenant. There is no way to build one without a tenant, and none to reach another's."""

    @property
    def tenant(self) -> str: ...

    def get(self, kind: type[R], id: str) -> R | None:
        """The record, read consistently, or None."""

    def get_all(self, kind: type[R], ids: Sequence[str], *, consistent: bool = True) -> Sequence[R]:
        """The records of these ids, in the order of ``ids``; those that are missing are left out. The ids are different
        ones. What is not ``consistent`` may be a second old, and costs half."""

    @overload
    def get_together(self, first: tuple[type[A], str], second: tuple[type[B], str], /) -> tuple[A | None, B | None]: ...
    @overload
    def get_together(
        self, first: tuple[type[A], str], second: tuple[type[B], str], third: tuple[type[C], str], /
    ) -> tuple[A | None, B | None, C | None]: ...
    def get_together(self, *names: tuple[type[Any], str]) -> tuple[Any, ...]:
        """Different records by kind and id, each read consistently, in one call; in no order, so that who needs one to
        be no older than another reads them one after the other."""

    def list(
        self,
        kind: type[R],
        *,
        prefix: str = "",
        after: str | None = None,
        limit: int = 50,
        newest_first: bool = False,
        since: str = "",
        where: Mapping[str, Any] | None = None,
        most: int | None = None,
        consistent: bool = True,
    ) -> Page[R]:
        """Records whose id starts with ``prefix``, in order of id, from behind ``after``, at most ``limit``.

        ``since`` leaves out those whose ids are below it, in either order. ``where`` keeps those whose top-level
        attributes equal the given values. ``most`` ends a page, full or not, when some more than so many records have
        been looked at. What is not ``consistent`` may be a second old, and costs half. A kind with entries by subject
        (``domain/subject_entries.py``) reads for ``where`` a ``subject`` nothing of others that has an entry.
        """

    def lacking_entries(self, kind: type[R], *, since: str, until: str, limit: int = 100, most: int = 1000) -> Page[R]:
        """Records of a kind with entries by subject that have none, with ids from ``since`` to ``until``: ``limit`` of
        them and some more, or as many as there are among ``most``; an earlier release has written them. ``next_id`` is
        the last that was looked at, None when all were. Who puts them again as they are gives them their entries. What
        was written in the last second may be missed."""

    def commit(self, *writes: Write) -> None:
        """All writes or none (at most 100). Raises ``Conflict`` with the index of the first write that failed."""

    def next_number(self, counter: str) -> int:
        """Add 1 to a counter and return it. A number may be skipped, never given twice."""


class Registry(Protocol):
    """Records that span tenants; only for schedules and the relay."""

    def store(self, tenant: str) -> Store: ...

    def due(
        self,
        kind: type[R],
        before: datetime,
        limit: int = 100,
        since: datetime | None = None,
        tenants: Collection[str] | None = None,
    ) -> Sequence[tuple[str, R]]:
        """(tenant, record) of outbox items, of ``accepting`` and ``undoing`` clusters, and of claims that wait for a
        node type, due ``before`` then and not before ``since``; the longest due first. With ``tenants`` theirs alone;
        of claims those of most others are not even read."""

    def in_hand(self, cluster_id: str) -> Sequence[tuple[str, NodeClaim]]:
        """(tenant, claim) of the claims of a cluster that a workflow works on, in order of id. A moment old."""

    def all(self, kind: type[R]) -> Iterator[tuple[str, R]]:
        """(tenant, record) of every cloud account, cluster, node provider or site, read as the caller goes on.

        Consistency is eventual.
        """

    def tenant_of(self, kind: type[R], id: str) -> str | None:
        """The tenant that has a cluster of this id; None also while the index does not show it yet."""

    def table_id(self) -> str:
        """Mark that tells this table from a restored copy of it."""

    def installation(self, randomness: bytes) -> str:
        """The installation's id; made of ``randomness`` at first use."""

    def platform(self) -> Store:
        """The records of the installation itself, which belong to no tenant."""
