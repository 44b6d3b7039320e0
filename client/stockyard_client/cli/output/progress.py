"""An operation's phases: live on a terminal, one plain line per change elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from rich.text import Text

from stockyard_client.cli.context import Context
from stockyard_client.cli.output.ages import seconds_since
from stockyard_client.cli.output.tables import style_of
from stockyard_client.client import Client
from stockyard_client.following import seconds_of
from stockyard_client.models import Cluster, Operation, Phase

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_SYMBOLS = {"succeeded": "✓", "failed": "✗", "running": "●", "skipped": "·", "pending": "○"}
_ASCII_SYMBOLS = {"succeeded": "+", "failed": "x", "running": "*", "skipped": "-", "pending": "."}


class Watcher(Protocol):
    """Shows an operation each time it has changed."""

    def __call__(self, operation: Operation) -> None:
        """The operation as it is now."""


def wait(context: Context, client: Client, operation: str, timeout: float | None) -> Operation:
    """Waits for ``operation`` and shows its phases on stderr; raises what the SDK raises."""
    context.interrupted = f"Stopped waiting; the operation goes on. To wait again: stockyard operation wait {operation}"
    started = context.clock()
    with _watcher(context) as watch:
        result = client.wait_operation(operation, timeout=timeout, on_change=watch)
    context.say(f"{result.kind.replace('_', ' ')} succeeded in {duration(context.clock() - started)}")
    return result


def wait_for_cluster(context: Context, client: Client, cluster: Cluster, timeout: float | None) -> Cluster:
    """Waits for the cluster's operation, and for all that it orders: its pools and the members of its control plane."""
    started = context.clock()
    if cluster.operation_id:
        wait(context, client, cluster.operation_id, timeout)

    def remaining() -> float | None:
        return None if timeout is None else max(0.0, timeout - (context.clock() - started))

    context.interrupted = f"Stopped waiting for pools. To look: stockyard cluster get {cluster.name} --watch"
    cluster = client.wait_pools(cluster.id, timeout=remaining(), on_change=lines(context))
    return client.wait_control_plane(cluster, timeout=remaining(), on_change=lines(context))


def say_how_to_follow(context: Context, operation: str) -> None:
    """Say how to wait for the operation, to somebody who has not asked for that."""
    context.say(f"To follow: stockyard operation wait {operation}", "dim")


def duration(seconds: float) -> str:
    """``12s``, ``2m05s`` or ``1h02m``."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, remainder = divmod(whole, 60)
    return f"{minutes}m{remainder:02d}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02d}m"


def phase_seconds(phase: Phase) -> float | None:
    """Seconds that a phase took by the API's times; None for one that has not ended."""
    if not phase.started_at or not phase.ended_at:
        return None
    return seconds_of(phase.ended_at) - seconds_of(phase.started_at)


def lines(context: Context) -> Callable[[str], None]:
    """Printer on stderr: a line for each text, with the seconds since now."""
    started = context.clock()

    def line(text: str) -> None:
        context.say(f"[{context.clock() - started:5.0f}s] {text}")

    return line


def symbol(console: Console, state: str) -> str:
    """The sign of a state, in ASCII where the stream can do no better."""
    unicode = console.encoding.lower().startswith("utf")
    return (_SYMBOLS if unicode else _ASCII_SYMBOLS).get(state, "?")


def phase_text(console: Console, phase: Phase, seconds: float | None = None) -> Text:
    """Mark, name, time and message of a phase; ``seconds`` is how long it has been running."""
    text = Text(f"{symbol(console, phase.state)} {phase.name}", style=style_of(phase.state) or "")
    if phase.attempt > 1:
        text.append(f" (attempt {phase.attempt})", style="dim")
    elapsed = seconds if seconds is not None else phase_seconds(phase)
    if elapsed is not None:
        text.append(f"  {duration(elapsed)}", style="dim")
    if phase.message:
        text.append(f"  {phase.message}", style="dim")
    return text


@contextmanager
def _watcher(context: Context) -> Iterator[Watcher]:
    if not context.err.is_terminal:
        yield _PlainLines(context)
        return
    from rich.live import Live

    display = _Display(context)
    # drawn anew by itself, so that the seconds go on while nothing else changes
    with Live(console=context.err, refresh_per_second=4, get_renderable=display.draw) as live:

        def watch(operation: Operation) -> None:
            display.operation = operation
            live.refresh()

        yield watch


class _Display:
    """Picture of an operation on a terminal, with the seconds of it and of each phase."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._started = context.clock()
        self._phases: dict[tuple[str, int], float] = {}
        self.operation: Operation | None = None

    def draw(self) -> RenderableType:
        """The display as it is now."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        operation = self.operation
        if operation is None:
            return Text("")
        head = Table.grid(padding=(0, 2))
        head.add_row(
            Text(operation.kind.replace("_", " "), style="bold"),
            ProgressBar(total=100, completed=operation.progress, width=30),
            Text(f"{operation.progress}%"),
            Text(duration(self._since(operation.created_at, self._started)), style="dim"),
        )
        phases = (phase_text(self._context.err, phase, self._running(phase)) for phase in operation.phases)
        return Group(head, *phases)

    def _running(self, phase: Phase) -> float | None:
        """Seconds that a phase has been running."""
        if phase.state != "running":
            return None
        first_seen_at = self._phases.setdefault((phase.name, phase.attempt), self._context.clock())
        return self._since(phase.started_at, first_seen_at)

    def _since(self, moment: str | None, first_seen_at: float) -> float:
        """Seconds since a moment of the API, or since the first look where its clock is behind or told nothing."""
        by_the_api = seconds_since(moment, self._context.now()) or 0.0
        return max(by_the_api, self._context.clock() - first_seen_at)


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
            took = phase_seconds(phase) if phase.state != "running" else None
            state = phase.state if took is None else f"{phase.state} in {duration(took)}"
            message = f"  {phase.message}" if phase.message else ""
            self._context.say(f"[{elapsed:5.0f}s] {phase.name:<14} {state}{message}")
