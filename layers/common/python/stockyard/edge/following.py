"""Cursors that follow a list in order of time, so that a follower is told everything once, and at once.

An id is made a little before what it names is stored, so something older may still come before what was just told. A
cursor therefore says two things: behind which id nothing was told yet, which is never a young one, and which young ones
were told all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from stockyard.domain.values import ids
from stockyard.domain.values.patterns import pattern
from stockyard.errors import InvalidInput

if TYPE_CHECKING:
    from stockyard.domain.records import AuditRecord, Event, Operation
    from stockyard.ports import Page

R = TypeVar("R", bound="Operation | Event | AuditRecord")
Read = "Callable[[str | None, int], Page[R]]"

SETTLED = timedelta(seconds=5)
"""An id older than this has its final place in the list: longer than a write with its repetitions in the way of others.
One that the table does not answer may come later (decision 11)."""
MOST_YOUNG = 90
"""Young ones that a cursor remembers: one more is told when the first of them is settled."""
_TAIL = 10
"""Characters at the end of an id by which a cursor remembers it: 50 random bits."""
_CURSOR = pattern(rf"(?P<behind>[a-z]+_[0-9A-Z]{{10}}(?:[0-9A-Z]{{16}})?)~(?P<tails>(?:[0-9A-Z]{{{_TAIL}}})*)")


@dataclass(frozen=True, slots=True)
class Cursor:
    """Everything up to ``behind`` was told, and behind it those whose ids end in one of ``tails``."""

    behind: str
    tails: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.behind}~{''.join(sorted(self.tails))}"


def read_cursor(text: str, prefix: str) -> Cursor | None:
    """The cursor that ``text`` is; None when it is an id. ``InvalidInput`` when it is neither of this list."""
    match = _CURSOR.fullmatch(text)
    if match is not None and text.startswith(f"{prefix}_"):
        tails = match["tails"]
        return Cursor(match["behind"], frozenset(tails[i : i + _TAIL] for i in range(0, len(tails), _TAIL)))
    if ids.is_id(text) and text.startswith(f"{prefix}_"):
        return None
    raise InvalidInput.of_parameter(
        "after", f"must be the cursor of an answer of this list, or the id of an item of it ({prefix}_...)."
    )


def settled_bound(prefix: str, now: datetime) -> str:
    """A text behind all ids that have their final place."""
    return ids.before(prefix, now - SETTLED)


def news(read: Callable[[str | None, int], Page[R]], cursor: Cursor, settled: str, size: int) -> tuple[list[R], Cursor]:
    """At most ``size`` items that the cursor has not told, in order, and the cursor that has."""
    page = read(cursor.behind, size + len(cursor.tails))
    repeated = [item for item in page.items if tail(item.id) in cursor.tails]
    untold = [item for item in page.items if tail(item.id) not in cursor.tails]
    room = MOST_YOUNG - len(cursor.tails - {tail(item.id) for item in repeated if item.id < settled})
    items = first_of(untold[:size], settled, room)
    if page.next_id is None and len(items) == len(untold):
        return items, cursor_after([*repeated, *items], None, settled, cursor.behind)
    last = page.next_id if len(items) == len(untold) else items[-1].id if items else None
    next_cursor = cursor_after([*repeated, *items], last, settled, cursor.behind)
    # some that were told may stand behind this page
    beyond = cursor.tails - {tail(item.id) for item in repeated}
    return items, Cursor(next_cursor.behind, next_cursor.tails | beyond)


def tail(id: str) -> str:
    """Part of the id by which a cursor remembers it."""
    return id[-_TAIL:]


def first_of(items: Sequence[R], settled: str, room: int = MOST_YOUNG) -> list[R]:
    """The items up to the one with which there are ``room`` young ones."""
    front: list[R] = []
    for item in items:
        room -= item.id >= settled
        if room < 0:
            break
        front.append(item)
    return front


def cursor_after(items: Sequence[R], last: str | None, settled: str, behind: str = "") -> Cursor:
    """The cursor of somebody who was told these; ``last`` is the last one where more could have been told.

    Nothing older than ``settled`` was left out before ``last``.
    """
    horizon = settled if last is None else min(settled, last)
    behind = max(behind, horizon)
    return Cursor(behind, frozenset(tail(item.id) for item in items if item.id > behind))
