"""All records of a kind, page by page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from stockyard.domain.records import Record
from stockyard.ports import Store

R = TypeVar("R", bound=Record)


def every(
    store: Store, kind: type[R], prefix: str = "", where: Mapping[str, Any] | None = None, *, consistent: bool = True
) -> Iterator[R]:
    """Each record whose id starts with ``prefix`` and whose attributes equal ``where``, in order of id. What is not
    ``consistent`` may be a second old, and costs half."""
    after: str | None = None
    while True:
        page = store.list(kind, prefix=prefix, after=after, limit=200, where=where, consistent=consistent)
        yield from page.items
        if page.next_id is None:
            return
        after = page.next_id
