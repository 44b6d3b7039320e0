"""An operation's phases: live on a terminal, one plain line per change elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from rich.text import Text

from stockyard_client.cli.context import Context
from stockyard_client.cli.tables import style_of
from stockyard_client.client import Client
from stockyard_client.models import Operation, Phase

if TYPE_CHECKING:
    from rich.console import Console, Group

_MARKS = {"succeeded": "✓", "failed": "✗", "running": "●", "skipped": "·", "pending": "○"}
_ASCII_MARKS = {"succeeded": "+", "failed": "x", "running": "*", "skipped": "-", "pending": "."}


class Watcher(Protocol):
    """Shows an operation each time it has changed."""

    def __call__(self, operation: Operation) -> None:
        """The operation as it is now."""


def wait(context: Context, client: Client, operation: str, timeout: float | None) -> Operation:
    """Waits for ``operation`` and shows its phases on stderr; raises what the SDK raises."""
    with _watcher(context) as watch:
        return client.wait_operation(operation, timeout=timeout, on_change=watch)


def lines(context: Context) -> Callable[[str], None]:
    """What prints a line on stderr for each text that it gets, with the seconds since now."""
    started = context.clock()

    def line(text: str) -> None:
        context.say(f"[{context.clock() - started:5.0f}s] {text}")

    return line


def mark(console: Console, state: str) -> str:
    """The sign of a state, in ASCII where the stream can do no better."""
    unicode = console.encoding.lower().startswith("utf")
    return (_MARKS if unicode else _ASCII_MARKS).get(state, "?")


def phase_text(console: Console, phase: Phase) -> Text:
    """Mark, name and message of a phase."""
    text = Text(f"{mark(console, phase.state)} {phase.name}", style=style_of(phase.state) or "")
    if phase.attempt > 1:
        text.append(f" (attempt {phase.attempt})", style="dim")
    if phase.message:
        text.append(f"  {phase.message}", style="dim")
    return text


@contextmanager
def _watcher(context: Context) -> Iterator[Watcher]:
    if not context.err.is_terminal:
        yield _PlainLines(context)
        return
    from rich.live import Live

    with Live(console=context.err, refresh_per_second=4) as live:

        def watch(operation: Operation) -> None:
            live.update(_picture(context.err, operation))

        yield watch


def _picture(console: Console, operation: Operation) -> Group:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    head = Table.grid(padding=(0, 2))
    head.add_row(
        Text(operation.kind.replace("_", " "), style="bold"),
        ProgressBar(total=100, completed=operation.progress, width=30),
        Text(f"{operation.progress}%"),
    )
    return Group(head, *(phase_text(console, phase) for phase in operation.phases))


class _PlainLines:
    """One line for each phase that has changed since the last look, with the seconds waited."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._started = context.clock()
        self._seen: dict[str, tuple[str, int, str | None]] = {}

    def __call__(self, operation: Operation) -> None:
        elapsed = self._context.clock() - self._started
        for phase in operation.phases:
            now = (phase.state, phase.attempt, phase.message)
            if phase.state == "pending" or self._seen.get(phase.name) == now:
                continue
            self._seen[phase.name] = now
            message = f"  {phase.message}" if phase.message else ""
            self._context.say(f"[{elapsed:5.0f}s] {phase.name:<14} {phase.state}{message}")
