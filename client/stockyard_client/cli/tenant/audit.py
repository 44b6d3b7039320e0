"""``stockyard audit``: who did what, and who does."""

from __future__ import annotations

from typing import Annotated

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.operations import timelines
from stockyard_client.cli.operations.timelines import After, Follow, Limit, Part, Since, Timeline
from stockyard_client.cli.output.output import Form, Output
from stockyard_client.cli.output.tables import Column, Printer
from stockyard_client.resources.tenant import AuditRecord

app = typer.Typer(no_args_is_help=True, help="Who did what.", rich_markup_mode=None)


def printer(*, ages: bool) -> Printer[AuditRecord]:
    """The columns of audit records, with ages or with times."""
    return Printer(
        (
            Column("AGE", lambda r: r.time, is_age=True)
            if ages
            else Column("TIME", lambda r: timelines.whole_second(r.time), brief=True),
            Column("TIME", lambda r: r.time, wide=True),
            Column("ACTOR", lambda r: r.actor),
            Column("ACTION", lambda r: r.action),
            Column("OUTCOME", lambda r: r.outcome),
            Column("SUBJECT", lambda r: r.subject, give=1),
            Column("DETAIL", lambda r: r.detail, wide=True),
            Column("REQUEST", lambda r: r.request_id, wide=True),
            Column("ID", lambda r: r.id, wide=True),
        ),
        lambda r: r.id,
    )


@app.command("list")
def list_(
    run: typer.Context,
    subject: Annotated[str | None, typer.Option(metavar="ID", help="Only what was done to this resource.")] = None,
    actor: Annotated[str | None, typer.Option(help="Only what this actor did, such as user:ann.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this action, such as DeleteCluster.")] = None,
    outcome: Annotated[str | None, typer.Option(help="Only what ended so: done, or the type of an error.")] = None,
    since: Since = None,
    limit: Limit = None,
    after: After = None,
    follow: Follow = False,
    output: Output = Form.TABLE,
) -> None:
    """List who did what, the newest last; for admins.

    50 unless --limit, --since or --after say otherwise; --follow goes on.
    """
    context = contexts.of(run)
    query = {"subject": subject, "actor": actor, "action": action, "outcome": outcome}
    with context.client() as client:
        records = Timeline(AuditRecord, printer(ages=not follow), client.audit, query, "stockyard audit list")
        timelines.show(context, output, records, Part(since, limit, after).or_newest(), follow=follow)
