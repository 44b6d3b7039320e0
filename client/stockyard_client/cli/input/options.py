"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from stockyard_client.cli.input.inputs import seconds


def _duration(text: str) -> float:
    try:
        return seconds(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


Queue = Annotated[bool, typer.Option("--queue", help="Wait for the operation that is at work on the cluster.")]
File = Annotated[str | None, typer.Option("--file", "-f", help="JSON or YAML document; - reads standard input.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and its price; change nothing.")]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Go on, with a line for each change.")]
Manifest = Annotated[bool, typer.Option("--manifest", help="As a document that `apply` takes.")]
Tofu = Annotated[str | None, typer.Option(help="The program of OpenTofu; default: tofu on the path.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the end and show progress.")]
KeepFailed = Annotated[
    int | None,
    typer.Option("--keep-failed", metavar="MINUTES", help="Keep a machine that does not come up; it is billed."),
]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", parser=_duration, metavar="DURATION", help="Stop waiting after 90s, 15m, 1h30m ..."),
]
