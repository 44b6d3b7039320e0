"""Lists in order of time: their newest part, the newest last, and with ``--follow`` what comes."""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any, Generic, Protocol, TypeVar

import typer

from stockyard_client.base_models import Model
from stockyard_client.cli.context import Context
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.documents.field_sources import FieldSource
from stockyard_client.cli.input.inputs import seconds
from stockyard_client.cli.output.output import Form, show_many
from stockyard_client.cli.output.tables import Printer, cell, cells, padded
from stockyard_client.cli.output.watching import trouble
from stockyard_client.cli.visible import echo, json_text, yaml_text
from stockyard_client.following import Feed
from stockyard_client.resources.base import parsed

M = TypeVar("M", bound=Model)

DEFAULT_LIMIT = 50
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on, with a line for each that comes.")]
Since = Annotated[
    str | None, typer.Option(help="Only what is not older: 90s, 15m, 1h30m, 2d, or a time as 2026-01-31T12:00:00Z.")
]
Limit = Annotated[int | None, typer.Option(min=1, max=10_000, help="The newest so many.")]
After = Annotated[str | None, typer.Option(help="Only what came after the one of this id, or after this cursor.")]

_WIDTHS = {"TIME": 20, "SUBJECT": 30, "REASON": 17, "ACTOR": 20, "ACTION": 16, "OUTCOME": 9}
"""Of columns of what is followed: nobody knows yet what comes."""

_OPTIONS = {"detail_type": "kind"}
"""Filters of the API whose options have another name."""


def option_of(name: str) -> str:
    """The option of a filter."""
    return _OPTIONS.get(name, name)


class Source(Protocol):
    """Source of a list in order of time."""

    def list(self, *, page_size: int | None = None, **query: Any) -> Iterator[Any]: ...

    def feed(self, **query: Any) -> Feed: ...


@dataclass(frozen=True)
class Timeline(Generic[M]):
    """A list of ``model`` in order of time. ``query`` are its filters; ``command`` is what lists it."""

    model: type[M]
    printer: Printer[M]
    source: Source
    query: Mapping[str, Any]
    command: str

    def again(self, cursor: str) -> str:
        """Command that goes on from ``cursor``."""
        options = "".join(
            f" --{option_of(name)} {shlex.quote(str(value))}" for name, value in self.query.items() if value
        )
        return f"{self.command} --follow{options} --after {cursor}"


@dataclass(frozen=True)
class Part:
    """Part of a list that is wanted: the ``limit`` newest, what came ``since`` a time, or ``after`` an id or a
    cursor."""

    since: str | None = None
    limit: int | None = None
    after: str | None = None

    def or_newest(self) -> Part:
        """The 50 newest, where nothing is said."""
        return self if self.limit or self.since or self.after else Part(limit=DEFAULT_LIMIT)


def show(context: Context, form: Form, timeline: Timeline[M], part: Part, *, follow: bool) -> None:
    """Show a part on stdout, the newest last; with ``follow`` what comes after it, until somebody interrupts."""
    context.field_sources.append(FieldSource(options={f"/{name}": f"--{option_of(name)}" for name in timeline.query}))
    moment = moment_of(context, part.since)
    if follow:
        _follow(context, form, timeline, part, moment)
        return
    source, query = timeline.source, timeline.query
    if part.limit and not part.after:
        listed = source.list(**query, since=moment, order="desc", page_size=min(part.limit, 200))
        records = list(islice(listed, part.limit))[::-1]
    else:
        records = list(deque(source.list(**query, since=moment, after=part.after), maxlen=part.limit))
    show_many(context, form, timeline.printer, records)


def _follow(context: Context, form: Form, timeline: Timeline[M], part: Part, since: str | None) -> None:
    newest = 0 if since or part.after else part.limit or 0
    feed = timeline.source.feed(
        **timeline.query, since=since, newest=newest, after=part.after, on_trouble=trouble(context)
    )
    lines = _Lines(context, form, timeline.printer)
    while True:
        lines.write([parsed(timeline.model, item) for item in feed.poll()])
        if feed.cursor:
            context.interrupted = f"Stopped. To go on from here: {timeline.again(feed.cursor)}"


class _Lines(Generic[M]):
    """A record a line; the heading comes with the first one."""

    def __init__(self, context: Context, form: Form, printer: Printer[M]) -> None:
        self._context, self._form, self._printer = context, form, printer
        self._columns = printer.columns_of(wide=form is Form.WIDE)
        self._started = False
        self._widths = [_WIDTHS.get(column.heading, 0) for column in self._columns]

    def write(self, records: Sequence[M]) -> None:
        """Records that came together; the first ones say how wide the columns below the heading are."""
        if self._form in {Form.TABLE, Form.WIDE}:
            for record in records:
                self._make_room([cell(column.value(record)) for column in self._columns])
        for record in records:
            self._write(record)

    def _write(self, record: M) -> None:
        if self._form is Form.JSON:
            echo(json_text(record.document()))
        elif self._form is Form.YAML:
            echo("---\n" + yaml_text(record.document()))
        elif self._form is Form.NAME:
            echo(self._printer.name(record))
        else:
            if not self._started:
                self._line([column.heading for column in self._columns])
                self._started = True
            self._line([cell(column.value(record)) for column in self._columns])

    def _make_room(self, row: Sequence[str]) -> None:
        # the last column needs no width; the others only grow
        last = len(row) - 1
        self._widths = [
            width if index == last else max(width, cells(text))
            for index, (width, text) in enumerate(zip(self._widths, row, strict=True))
        ]

    def _line(self, row: Sequence[str]) -> None:
        self._make_room(row)
        columns = [padded(text, width) for text, width in zip(row, self._widths, strict=True)]
        self._context.out.print("  ".join(columns).rstrip(), soft_wrap=True, highlight=False, markup=False)


def moment_of(context: Context, since: str | None) -> str | None:
    """A time as the API takes it, of a duration before now or of a time itself. Raises ``BadInput``."""
    if since is None:
        return None
    try:
        moment = datetime.fromtimestamp(context.now() - seconds(since), UTC)
    except ValueError:
        try:
            moment = datetime.fromisoformat(since)
        except ValueError:
            text = "--since is neither a duration, such as 15m, nor a time, such as 2026-01-31T12:00:00Z"
            raise BadInput(text) from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def whole_second(time: str | None) -> str | None:
    """A time without the parts of a second."""
    front, point, _ = (time or "").partition(".")
    return f"{front}Z" if point else time
