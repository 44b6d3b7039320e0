"""``stockyard events`` and ``stockyard cluster events``: what has happened, and what happens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.input.completion import cluster_names
from stockyard_client.cli.operations import timelines
from stockyard_client.cli.operations.timelines import After, Follow, Limit, Part, Since, Timeline
from stockyard_client.cli.output.output import Form, Output
from stockyard_client.cli.output.tables import Column, Printer
from stockyard_client.client import Client
from stockyard_client.models import Event


class Names:
    """The names of clusters by their ids, read once; ids of what is gone stay as they are. Claims are named by their
    events."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._names: dict[str, str] = {}

    def of_event(self, event: Event) -> str:
        """Subject of an event, as people call it."""
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


def printer(names: Names, *, subject: bool, ages: bool) -> Printer[Event]:
    """The columns of events, with or without what they are about, with ages or with times."""
    about: list[Column[Event]] = [
        Column("SUBJECT", names.of_event, brief=True),
        Column("SUBJECT", lambda event: event.subject, wide=True),
    ]
    return Printer(
        (
            Column("AGE", lambda event: event.time, brief=True, is_age=True)
            if ages
            else Column("TIME", lambda event: timelines.whole_second(event.time), brief=True),
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
        part = Part(since, limit, after).or_newest()
        show(context, client, output, query, part, follow=follow)


def subject_of(client: Client, cluster: str) -> str:
    """The id of a cluster; one that is gone is named by it."""
    return cluster if cluster.startswith("clu_") else client.clusters.get(cluster).id


def show(
    context: contexts.Context,
    client: Client,
    form: Form,
    query: Mapping[str, Any],
    part: Part,
    *,
    follow: bool,
) -> None:
    """Events on stdout, the newest last, and with ``follow`` those that come."""
    names = Names(client)
    columns = printer(names, subject=not query.get("subject"), ages=not follow)
    timeline = Timeline(Event, columns, client.events, query, "stockyard events")
    timelines.show(context, form, timeline, part, follow=follow)
