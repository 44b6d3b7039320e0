"""``--watch``: a line for each change of what was listed or shown, on a terminal and in a pipe alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar

from rich.text import Text

from stockyard_client.base_models import Model
from stockyard_client.cli.context import Context
from stockyard_client.cli.output.output import Form
from stockyard_client.cli.output.tables import (
    GAP,
    LEAST_WIDTH,
    NARROW_GAP,
    Printer,
    cells,
    ellipsis,
    fitted,
    padded,
    rows_of,
    spared,
    style_of,
)
from stockyard_client.cli.visible import echo, json_text, yaml_text
from stockyard_client.client import Client
from stockyard_client.errors import ApiError, ConnectionFailed
from stockyard_client.following import OnTrouble

R = TypeVar("R", bound=Model)

STATES = ("STATUS", "PHASE", "VERIFICATION")
"""Headings of the column that says what state a record is in."""
DELETED = "Deleted"
_ROOM = {"STATUS": 10, "PHASE": 13, "TYPE": 10, "ZONE": 10, "CAPACITY": 9, "AGE": 5}
"""Least widths, for what comes later is often longer than what is there at first."""
MOST_READ = 20
"""Records that are read one by one after news; of more the whole list is read."""
READ_AGAIN_SECONDS = 5.0
"""The pause after news that could not be read."""
STOPPED = "Stopped watching; nothing else was stopped. The same command goes on from what is there then."


class Lines(Generic[R]):
    """Writes records as they come: rows of fixed widths, a JSON document a line, YAML documents, or names."""

    def __init__(self, context: Context, form: Form, printer: Printer[R]) -> None:
        self._context, self._form, self._printer = context, form, printer
        self._columns = printer.columns_of(wide=form is Form.WIDE)
        self._widths = [max(len(c.heading), _ROOM.get(c.heading, 0)) for c in self._columns]
        self._shown: dict[str, list[str]] = {}
        self._kept_columns = list(range(len(self._columns)))
        self._has_heading = self._is_narrow = False

    def start(self, records: Mapping[str, R]) -> None:
        """Show the records of the start, by key; the heading comes with the first row."""
        rows = {key: self._row(record) for key, record in records.items()}
        for row in rows.values():
            self._make_room(row)
        for key, record in records.items():
            self._write(key, record, rows[key])

    def changed(self, key: str, record: R) -> None:
        """A record that may have changed; a table shows only what is seen in it."""
        row, before = self._row(record), self._shown.get(key)
        lasting = [
            index for index, column in enumerate(self._columns) if not column.is_age and column.heading != "UPDATED"
        ]
        unchanged = before is not None and all(before[index] == row[index] for index in lasting)
        if not unchanged or self._form in {Form.JSON, Form.YAML}:
            self._write(key, record, row)

    def removed(self, key: str, record: R) -> None:
        """A record that is there no more, as it was last."""
        index = next((p for p, column in enumerate(self._columns) if column.heading in STATES), None)
        row = [DELETED if p == index else text for p, text in enumerate(self._row(record))]
        self._write(key, record, row, deleted=True)
        self._shown.pop(key, None)

    def _row(self, record: R) -> list[str]:
        return rows_of(self._context, self._columns, [record])[0]

    def _write(self, key: str, record: R, row: list[str], *, deleted: bool = False) -> None:
        self._shown[key] = row
        document = {**record.document(), "deleted": True} if deleted else record.document()
        if self._form is Form.JSON:
            echo(json_text(document))
        elif self._form is Form.YAML:
            echo("---\n" + yaml_text(document))
        elif self._form is Form.NAME:
            echo(self._printer.name(record))
        else:
            self._make_room(row)
            if not self._has_heading:
                self._has_heading = True
                self._print([column.heading for column in self._columns], heading=True)
            self._print(row)

    def _make_room(self, row: Sequence[str]) -> None:
        """Widths only grow: rows that come later stand below those before them."""
        self._widths = [max(width, cells(text)) for width, text in zip(self._widths, row, strict=True)]

    def _print(self, row: list[str], *, heading: bool = False) -> None:
        out, room, gap = self._context.out, self._context.room, GAP
        widths = [self._widths[index] for index in self._kept_columns]
        if room is not None:
            front = sum(widths[:-1]) + gap * (len(widths) - 1)
            if self._is_narrow or front + LEAST_WIDTH > room:
                gap, widths = NARROW_GAP, self._narrow(room)
            else:
                widths[-1] = room - front
        line = Text()
        for index, width in zip(self._kept_columns, widths, strict=True):
            part = row[index] if room is None else ellipsis(row[index], width, out.encoding)
            line.append(padded(part, width + gap), style="bold" if heading else style_of(row[index]))
        line.rstrip()
        out.print(line, soft_wrap=True)

    def _narrow(self, room: int) -> list[int]:
        """The widths on a terminal that is too narrow; for good, so that rows stand below each other."""
        headings, give = [column.heading for column in self._columns], [column.give for column in self._columns]
        if not self._is_narrow:
            self._is_narrow = True
            self._kept_columns = spared(
                self._kept_columns, self._widths, headings, give, [c.spare for c in self._columns], room
            )
        indexes = self._kept_columns
        return fitted(
            [self._widths[p] for p in indexes], [headings[p] for p in indexes], [give[p] for p in indexes], room
        )


@dataclass(frozen=True)
class Listing(Generic[R]):
    """Records that a list command lists: ``read`` gives all of it, ``get`` one by its key. ``keys`` says which records
    an event may be about, among those that are shown. ``filtered``: one that has changed may belong to the list no
    more. ``again``: some changes have no event, so it is read again after so many seconds. Without ``get`` it is always
    read as a whole, and what is not in it any more is gone."""

    printer: Printer[R]
    read: Callable[[], Iterable[R]]
    get: Callable[[str], R] | None
    keys: Callable[[Mapping[str, Any], Mapping[str, R]], Iterable[str]]
    key: Callable[[R], str] = lambda record: str(getattr(record, "id", ""))
    filtered: bool = False
    again: float | None = None


def by_prefix(*prefixes: str) -> Callable[[Mapping[str, Any], Mapping[str, R]], Iterable[str]]:
    """Events whose subject is such a record itself."""

    def keys(event: Mapping[str, Any], _: Mapping[str, R]) -> Iterable[str]:
        subject = str(event.get("subject", ""))
        return [subject] if subject.startswith(prefixes) and "/" not in subject else []

    return keys


def trouble(context: Context) -> OnTrouble:
    """Says on stderr that the API is out of reach, and when it is asked again."""
    return lambda error, seconds: context.say(f"{error}; asking again in {seconds:.0f} s", "dim")


def watch_list(context: Context, client: Client, form: Form, listing: Listing[R]) -> NoReturn:
    """The list, and then a line for each change of it, until somebody interrupts.

    Events tell what has changed: they are followed from before the list is read, so that nothing falls between.
    """
    context.interrupted = STOPPED
    feed = client.events.feed(on_trouble=trouble(context))
    while feed.cursor is None:
        feed.poll()
    watch = _ListWatch(listing, Lines(context, form, listing.printer))
    watch.start()
    if watch.is_empty:
        context.say("Nothing found yet.", "dim")
    read_at = context.now()
    while True:
        events = feed.poll()
        if listing.again is not None and context.now() - read_at >= listing.again:
            watch.stale, read_at = True, context.now()
        try:
            watch.news(events)
        except (ApiError, ConnectionFailed) as error:
            if isinstance(error, ApiError) and not error.passes:
                raise
            trouble(context)(error, READ_AGAIN_SECONDS)
            context.sleep(READ_AGAIN_SECONDS)
            watch.stale = True


class _ListWatch(Generic[R]):
    """Records of a list that are on the screen. ``stale``: some news could not be read, so the next look is at the
    whole list."""

    def __init__(self, listing: Listing[R], lines: Lines[R]) -> None:
        self._listing, self._lines = listing, lines
        self._current: dict[str, R] = {}
        self.stale = False
        self._is_whole = listing.filtered or listing.get is None

    def start(self) -> None:
        """Shows what is there."""
        self._current = self._read_all()
        self._lines.start(self._current)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in the list."""
        return not self._current

    def news(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Shows what has changed by these events. Raises what reading raises; what was shown by then is not again."""
        keys = list(dict.fromkeys(key for event in events for key in self._listing.keys(event, self._current)))
        if self.stale or (keys and (self._is_whole or len(keys) > MOST_READ)):
            self._compare(self._read_all())
            self.stale = False
            return
        for key in keys:
            self._show(key, self._read(key))

    def _compare(self, records: Mapping[str, R]) -> None:
        """Shows new and changed rows of the list, and the present state of rows that have gone."""
        for key, record in records.items():
            if self._current.get(key) != record:
                self._show(key, record)
        for key in [key for key in self._current if key not in records]:
            self._show(key, self._read(key))
            self._current.pop(key, None)

    def _show(self, key: str, record: R | None) -> None:
        if record is not None:
            self._lines.changed(key, record)
            self._current[key] = record
        elif key in self._current:
            self._lines.removed(key, self._current.pop(key))

    def _read_all(self) -> dict[str, R]:
        return {self._listing.key(record): record for record in self._listing.read()}

    def _read(self, key: str) -> R | None:
        if self._listing.get is None:
            return None
        try:
            return self._listing.get(key)
        except ApiError as error:
            if error.status != 404:
                raise
            return None


def watch_one(context: Context, form: Form, printer: Printer[R], records: Iterator[R]) -> None:
    """A record, and a line for each change of it, until it is gone or somebody interrupts."""
    context.interrupted = STOPPED
    lines: Lines[R] = Lines(context, form, printer)
    last: R | None = None
    try:
        for record in records:
            if last is None:
                lines.start({"": record})
            else:
                lines.changed("", record)
            last = record
    except ApiError as error:
        if error.status != 404 or last is None:
            raise
        lines.removed("", last)
