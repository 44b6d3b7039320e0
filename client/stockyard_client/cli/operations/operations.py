"""``stockyard operation``: long-running changes."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.input.completion import cluster_names, operation_ids
from stockyard_client.cli.input.options import Timeout, Watch
from stockyard_client.cli.operations import events as event_lists
from stockyard_client.cli.operations import listings, timelines
from stockyard_client.cli.output import progress, watching
from stockyard_client.cli.output.output import OPERATIONS, Form, Output, show_many, show_one
from stockyard_client.client import Client
from stockyard_client.errors import ApiError
from stockyard_client.models import Operation

app = typer.Typer(no_args_is_help=True, help="Long-running changes.", rich_markup_mode=None)
Id = Annotated[str, typer.Argument(metavar="OPERATION", help="The operation's id.", autocompletion=operation_ids)]


@app.command("list")
def list_(
    run: typer.Context,
    status: Annotated[
        str | None, typer.Option(help="queued, running, succeeded, failed, cancelled or reverted.")
    ] = None,
    subject: Annotated[str | None, typer.Option(help="Only those of this resource, by its id.")] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Only those of this cluster itself.", autocompletion=cluster_names)
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Only those of this kind, such as create_cluster.")] = None,
    since: timelines.Since = None,
    limit: timelines.Limit = None,
    watch: Watch = False,
    output: Output = Form.TABLE,
) -> None:
    """List operations, the newest first. 50 unless --limit or --since say otherwise."""
    context = contexts.of(run)
    if cluster and subject:
        raise BadInput("give --cluster or --subject")
    newest = limit or (None if since else timelines.DEFAULT_LIMIT)
    with context.client() as client:
        about = event_lists.subject_of(client, cluster) if cluster else subject
        moment = timelines.moment_of(context, since)
        query = {"status": status, "subject": about, "kind": kind, "since": moment, "order": "desc"}
        if watch:
            watching.watch_list(context, client, output, listings.operations(client, query, newest))
        records = client.operations.list(**query, page_size=min(newest or 200, 200))
        show_many(context, output, OPERATIONS, islice(records, newest))


@app.command()
def get(run: typer.Context, operation: Id, watch: Watch = False, output: Output = Form.TABLE) -> None:
    """Show one operation, with its phases."""
    context = contexts.of(run)
    with context.client() as client:
        if watch:
            records = client.operations.watch(operation, on_trouble=watching.trouble(context))
            watching.watch_one(context, output, OPERATIONS, records)
            return
        record = client.operations.get(operation)
    show_one(context, output, OPERATIONS, record)
    if output in {Form.TABLE, Form.WIDE}:
        for phase in record.phases:
            context.out.print(progress.phase_text(context.out, phase), soft_wrap=True)


@app.command()
def wait(run: typer.Context, operation: Id, timeout: Timeout = None, output: Output = Form.TABLE) -> None:
    """Wait for the end of an operation and show its progress."""
    context = contexts.of(run)
    with context.client() as client:
        record = progress.wait(context, client, operation, timeout)
    show_one(context, output, OPERATIONS, record)


@app.command()
def describe(run: typer.Context, operation: Id, output: Output = Form.TABLE) -> None:
    """Describe an operation, with each phase. Why it failed, what it changed, and the last events are shown."""
    from stockyard_client.cli.output import descriptions

    context = contexts.of(run)
    with context.client() as client:
        record = client.operations.get(operation)
        if output is Form.TABLE:
            descriptions.operation(context, client, record)
        else:
            show_one(context, output, OPERATIONS, record)


def last(client: Client, operation: str | None) -> Operation | None:
    """The operation of that id, None where there is none any more: old ones may be forgotten."""
    if not operation:
        return None
    try:
        return client.operations.get(operation)
    except ApiError as error:
        if error.status == 404:
            return None
        raise


def finish(
    context: contexts.Context, client: Client, operation: Operation, *, wait: bool, timeout: float | None, output: Form
) -> None:
    """Show the operation that a command has begun, with ``wait`` at its end."""
    if wait:
        operation = progress.wait(context, client, operation.id, timeout)
    show_one(context, output, OPERATIONS, operation)
    if not operation.done:
        progress.say_how_to_follow(context, operation.id)
