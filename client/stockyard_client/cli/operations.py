"""``stockyard operation``: long-running changes."""

from __future__ import annotations

from typing import Annotated

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli import progress
from stockyard_client.cli.options import Timeout
from stockyard_client.cli.output import OPERATIONS, Form, Output, show_many, show_one
from stockyard_client.client import Client
from stockyard_client.errors import ApiError
from stockyard_client.models import Operation

app = typer.Typer(no_args_is_help=True, help="Long-running changes.", rich_markup_mode=None)
Id = Annotated[str, typer.Argument(metavar="OPERATION", help="The operation's id.")]


@app.command("list")
def list_(
    run: typer.Context,
    subject: Annotated[str | None, typer.Option(help="Only those of this resource, by its id.")] = None,
    output: Output = Form.TABLE,
) -> None:
    """List the operations."""
    context = contexts.of(run)
    with context.client() as client:
        show_many(context, output, OPERATIONS, client.operations.list(subject=subject))


@app.command()
def get(run: typer.Context, operation: Id, output: Output = Form.TABLE) -> None:
    """Show one operation, with its phases."""
    context = contexts.of(run)
    with context.client() as client:
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
    from stockyard_client.cli import descriptions

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
