"""Questions before something is lost. Scripts are not asked: their standard input is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from stockyard_client.cli.context import Context
from stockyard_client.cli.failures import FAILURE

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask on a terminal.")]


def confirm(context: Context, consequences: Iterable[str], *, yes: bool, question: str = "Delete it?") -> None:
    """Says what is lost and asks; returns when the answer is yes, or where nobody sits at a terminal.

    Any other answer ends the command with exit code 1. ``consequences`` is read only when the question is asked.
    """
    if yes or not context.asks:
        return
    for line in consequences:
        context.say(line)
    context.err.print(f"{question} [y/N] ", end="", style="bold")
    before, context.interrupted = context.interrupted, "\nNothing was changed."
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        context.say("Nothing was changed.")
        raise typer.Exit(FAILURE)
    context.interrupted = before
