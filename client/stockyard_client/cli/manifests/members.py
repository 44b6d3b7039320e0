"""``stockyard set``: what was applied together."""

from __future__ import annotations

from typing import Annotated

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.input.confirmations import Yes
from stockyard_client.cli.input.options import Timeout, Wait
from stockyard_client.cli.manifests.apply import check_removals
from stockyard_client.cli.manifests.removals import Doomed, remove, verb
from stockyard_client.cli.manifests.sets import Folder
from stockyard_client.cli.output.output import Form, Output, show_many
from stockyard_client.cli.output.tables import Column, Printer
from stockyard_client.cli.visible import echo
from stockyard_client.models import Plan
from stockyard_client.node_models import SetMember

app = typer.Typer(no_args_is_help=True, help="Sets of manifests: what was applied together.", rich_markup_mode=None)
Name = Annotated[str, typer.Argument(metavar="SET", help="Name of the set.")]
MEMBERS: Printer[SetMember] = Printer(
    (
        Column("SET", lambda member: member.set),
        Column("KIND", lambda member: member.kind.replace("-", " ")),
        Column("NAME", lambda member: member.name),
        Column("CLUSTER", lambda member: member.cluster),
        Column("APPLIED", lambda member: member.applied_at, is_age=True),
        Column("ID", lambda member: member.id, wide=True),
    ),
    lambda member: f"{member.kind}/{member.name}",
)


@app.command()
def members(
    run: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="SET", help="Name of the set; without it all sets.")] = None,
    output: Output = Form.TABLE,
) -> None:
    """List what is there of a set."""
    context = contexts.of(run)
    with context.client() as client:
        show_many(context, output, MEMBERS, client.set_members.list(set_name=name))


@app.command()
def delete(
    run: typer.Context,
    name: Name,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be deleted; delete nothing.")] = False,
    wait: Wait = False,
    timeout: Timeout = None,
) -> None:
    """Delete everything of a set, in reverse order. One that fails does not stop the others."""
    context = contexts.of(run)
    with context.client() as client:
        records = tuple(member.document() for member in client.set_members.list(set_name=name))
        things = Folder([]).unnamed(Plan(unnamed=records))
        if dry_run or not things:
            for thing in things:
                echo(thing.title)
            context.say("This was a dry run; nothing was changed." if things else "Nothing records.", "dim")
            return
        check_removals(context, things, yes=yes)

        def removed(thing: Doomed) -> None:
            echo(f"{thing.title} {verb(thing, wait=wait)}")

        codes = remove(context, client, things, ignore_missing=True, wait=wait, timeout=timeout, on_removed=removed)
    if codes:
        raise typer.Exit(codes[0])
