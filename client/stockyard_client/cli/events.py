"""``stockyard events`` and ``stockyard cluster events``: what has happened, and what happens."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.completion import cluster_names
from stockyard_client.cli.failures import BadInput
from stockyard_client.cli.inputs import seconds
from stockyard_client.cli.output import Form, Output, show_many
from stockyard_client.cli.tables import Column, Sheet, cell, cells, padded
from stockyard_client.cli.watching import trouble
from stockyard_client.client import Client
from stockyard_client.models import Event
from stockyard_client.resources import parsed

DEFAULT_LIMIT = 50
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on, with a line for each event.")]
Since = Annotated[
    str | None, typer.Option(help="Only what is not older: 90s, 15m, 1h30m, or a time as 2026-01-31T12:00:00Z.")
]
Limit = Annotated[int | None, typer.Option(min=1, max=10_000, help="The newest so many.")]
After = Annotated[str | None, typer.Option(help="Only what came after this event, or after this cursor.")]


_WIDTHS = {"TIME": 20, "SUBJECT": 30, "REASON": 17}
"""Of columns of what is followed: nobody knows yet what comes."""

_OPTIONS = {"subject": "subject", "reason": "reason", "detail_type": "kind"}
"""Filters of the API by their options."""


class Names:
    """The names of clusters by their ids, read once; ids of what is gone stay as they are. Claims are named by their
    events."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._names: dict[str, str] = {}

    def of_event(self, event: Event) -> str:
        """What an event is about, as people call it."""
        return event.name or self.of(event.subject)

    def of(self, subject: str) -> str:
        """A subject as people call it: ``demo``, ``demo/workers``, or its id."""
        identifier, slash, pool = subject.partition("/")
        if not identifier.startswith("clu_"):
            return subject
        if identifier not in self._names:
            self._names = {**self._names, identifier: identifier}
            self._names |= {cluster.id: cluster.name for cluster in self._client.clusters.list(page_size=200)}
        return f"{self._names[identifier]}{slash}{pool}"


def sheet(names: Names, *, subject: bool, ages: bool) -> Sheet[Event]:
    """The columns of events, with or without what they are about, with ages or with times."""
    about: list[Column[Event]] = [
        Column("SUBJECT", names.of_event, brief=True),
        Column("SUBJECT", lambda event: event.subject, wide=True),
    ]
    return Sheet(
        (
            Column("AGE", lambda event: event.time, brief=True, is_age=True)
            if ages
            else Column("TIME", lambda event: _second(event.time), brief=True),
            Column("TIME", lambda event: event.time, wide=True),
            *(about if subject else ()),
            Column("REASON", lambda event: event.reason, give=1),
            Column("MESSAGE", lambda event: event.message, give=2),
            Column("SEQUENCE", lambda event: event.sequence, wide=True),
            Column("ACTOR", lambda event: event.actor, wide=True),
            Column("ID", lambda event: event.id, wide=True),
        ),
        lambda event: event.id,
    )


def events(
    run: typer.Context,
    cluster: Annotated[
        str | None, typer.Option(help="Only those of this cluster itself.", autocompletion=cluster_names)
    ] = None,
    subject: Annotated[str | None, typer.Option(help="Only those of this resource, by its id.")] = None,
    reason: Annotated[str | None, typer.Option(help="Only those with this reason, such as DeletionBlocked.")] = None,
    kind: Annotated[str | None, typer.Option(help="Cluster, Pool, NodeClaim, Operation or CloudAccount.")] = None,
    since: Since = None,
    limit: Limit = None,
    after: After = None,
    follow: Follow = False,
    output: Output = Form.TABLE,
) -> None:
    """List what happened, the newest last. 50 unless --limit, --since or --after say otherwise; --follow goes on."""
    context = contexts.of(run)
    if cluster and subject:
        raise BadInput("give --cluster or --subject")
    with context.client() as client:
        about = subject_of(client, cluster) if cluster else subject
        query = {"subject": about, "reason": reason, "detail_type": kind}
        newest = limit if limit or since or after else DEFAULT_LIMIT
        show(context, client, output, query, since=since, newest=newest, after=after, follow=follow)


def subject_of(client: Client, cluster: str) -> str:
    """The id of a cluster; one that is gone is named by it."""
    return cluster if cluster.startswith("clu_") else client.clusters.get(cluster).id


def show(
    context: contexts.Context,
    client: Client,
    form: Form,
    query: Mapping[str, Any],
    *,
    since: str | None,
    newest: int | None,
    after: str | None,
    follow: bool,
) -> None:
    """Events on stdout, the newest last: the ``newest`` so many, those ``since`` a time or ``after`` one, or all."""
    names, moment = Names(client), moment_of(context, since)
    columns = sheet(names, subject=not query.get("subject"), ages=not follow)
    if follow:
        _follow(context, client, form, columns, query, moment, newest, after)
        return
    if newest:
        listed = client.events.list(**query, since=moment, order="desc", page_size=min(newest, 200))
        records = [event for event, _ in zip(listed, range(newest), strict=False)][::-1]
    else:
        records = list(client.events.list(**query, since=moment, after=after))
    show_many(context, form, columns, records)


def _follow(
    context: contexts.Context,
    client: Client,
    form: Form,
    columns: Sheet[Event],
    query: Mapping[str, Any],
    since: str | None,
    newest: int | None,
    after: str | None,
) -> None:
    feed = client.events.feed(
        **query, since=since, newest=0 if since or after else newest or 0, after=after, on_trouble=trouble(context)
    )
    lines = _Lines(context, form, columns)
    filters = "".join(f" --{_OPTIONS[name]} {value}" for name, value in query.items() if value)
    while True:
        lines.write([parsed(Event, item) for item in feed.poll()])
        if feed.cursor:
            again = f"stockyard events --follow{filters} --after {feed.cursor}"
            context.interrupted = f"Stopped. To go on from here: {again}"


class _Lines:
    """An event a line; the heading comes with the first one."""

    def __init__(self, context: contexts.Context, form: Form, columns: Sheet[Event]) -> None:
        self._context, self._form, self._sheet = context, form, columns
        self._columns = columns.columns_of(wide=form is Form.WIDE)
        self._started = False
        self._widths = [_WIDTHS.get(column.heading, 0) for column in self._columns]

    def write(self, events: Sequence[Event]) -> None:
        """Events that came together; the first ones say how wide the columns below the heading are."""
        if self._form in {Form.TABLE, Form.WIDE}:
            for event in events:
                self._make_room([cell(column.value(event)) for column in self._columns])
        for event in events:
            self._write(event)

    def _write(self, event: Event) -> None:
        if self._form is Form.JSON:
            typer.echo(json.dumps(event.document(), ensure_ascii=False))
        elif self._form is Form.YAML:
            import yaml

            typer.echo("---\n" + yaml.safe_dump(event.document(), sort_keys=False, allow_unicode=True).rstrip("\n"))
        elif self._form is Form.NAME:
            typer.echo(event.id)
        else:
            if not self._started:
                self._line([column.heading for column in self._columns])
                self._started = True
            self._line([cell(column.value(event)) for column in self._columns])

    def _make_room(self, row: Sequence[str]) -> None:
        # the last column needs no width; the others only grow
        last = len(row) - 1
        self._widths = [
            width if place == last else max(width, cells(text))
            for place, (width, text) in enumerate(zip(self._widths, row, strict=True))
        ]

    def _line(self, row: Sequence[str]) -> None:
        self._make_room(row)
        columns = [padded(text, width) for text, width in zip(row, self._widths, strict=True)]
        self._context.out.print("  ".join(columns).rstrip(), soft_wrap=True, highlight=False, markup=False)


def moment_of(context: contexts.Context, since: str | None) -> str | None:
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


def _second(time: str | None) -> str | None:
    """A time without the parts of a second."""
    front, point, _ = (time or "").partition(".")
    return f"{front}Z" if point else time
