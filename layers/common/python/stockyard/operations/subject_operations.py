"""Operations of one subject: by their entries as far as all operations have one, and by the table from there on.

An operation changes some seven times. Its entry only names it, and is written once, by the sweep.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stockyard.domain.operation_records import SubjectOperation
from stockyard.domain.records import Fact, Operation
from stockyard.domain.subject_entries import bound_fact
from stockyard.domain.values import ids
from stockyard.ports import Page, Store

_MAX_SUBJECT = 200
"""Characters of the longest subject that has entries: nothing of ours has a longer name, and a key has its limit."""
_READ = 100
"""Entries that are read at once where a filter may leave out most of what they name."""


@dataclass(frozen=True, slots=True)
class _List:
    """Request for a page; ``bound`` is a text below which all operations have entries, by their ids."""

    store: Store
    bound: str
    after: str | None
    newest_first: bool
    since: str
    where: Mapping[str, Any]
    most: int | None
    consistent: bool

    def by_table(self, limit: int) -> Page[Operation]:
        """Page of those with ids from the bound on."""
        return self.store.list(
            Operation,
            after=self.after,
            limit=limit,
            newest_first=self.newest_first,
            since=max(self.since, self.bound),
            where=self.where,
            most=self.most,
            consistent=self.consistent,
        )

    def by_entries(self, limit: int) -> Page[Operation]:
        """Page of those with ids below the bound."""
        start = self.after
        if self.newest_first:
            start = self.bound if start is None else min(start, self.bound)
        elif start is not None and start >= self.bound:
            return Page([], None)
        stem, filters = f"{self.where['subject']}/", {**self.where}
        del filters["subject"]
        items: list[Operation] = []
        read = 0
        while True:
            entries = self.store.list(
                SubjectOperation,
                prefix=f"{stem}{ids.OPERATION}_",
                after=None if start is None else f"{stem}{start}",
                limit=_READ if filters else min(limit - len(items), _READ),
                newest_first=self.newest_first,
                since=f"{stem}{self.since}" if self.since else "",
                consistent=self.consistent,
            )
            names = [entry.operation_id for entry in entries.items if entry.operation_id < self.bound]
            records = self.store.get_all(Operation, names, consistent=self.consistent)
            items += [each for each in records if all(getattr(each, name) == filters[name] for name in filters)]
            read += len(names)
            # An entry behind the bound ends it too: the table tells of what is there.
            is_end = entries.next_id is None or len(names) < len(entries.items)
            if len(items) > limit or (len(items) == limit and not is_end):
                return Page(items[:limit], items[limit - 1].id, read)
            if is_end or (self.most is not None and read >= self.most):
                return Page(items, None if is_end else names[-1], read)
            start = names[-1]


def operations_of(
    store: Store,
    *,
    after: str | None,
    limit: int,
    newest_first: bool,
    since: str,
    where: Mapping[str, Any],
    most: int | None,
    consistent: bool = True,
) -> Page[Operation]:
    """The page that ``Store.list`` gives of operations, where ``where`` has a ``subject``."""
    fact = store.get(Fact, bound_fact(Operation)) if 0 < len(where["subject"]) <= _MAX_SUBJECT else None
    request = _List(store, fact.value if fact else "", after, newest_first, since, where, most, consistent)
    if not request.bound:
        return request.by_table(limit)
    items: list[Operation] = []
    last: str | None = None
    read = 0
    for part in (request.by_table, request.by_entries) if newest_first else (request.by_entries, request.by_table):
        # One more than asked for tells whether there is a next page.
        page = part(limit + 1 - len(items))
        items, last, read = [*items, *page.items], page.next_id, read + page.read
        if last is not None or len(items) > limit:
            break
    return Page(items[:limit], items[limit - 1].id if len(items) > limit else last, read)
