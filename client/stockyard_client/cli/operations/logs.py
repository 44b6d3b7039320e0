"""``stockyard logs``: what an operation did, phase by phase, with times, and what its runs have printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.failures import exit_code
from stockyard_client.cli.input.completion import operation_subjects
from stockyard_client.cli.operations.timelines import Follow
from stockyard_client.cli.output.tables import style_of
from stockyard_client.cli.output.watching import trouble
from stockyard_client.client import Client
from stockyard_client.errors import ApiError, OperationFailed
from stockyard_client.models import Operation, Phase

LINE_SECONDS = 5
"""How long a request for lines may wait: what else happens to the operation is told so much later at most."""
CONSOLE = "console"
"""The run that has the whole of what an error's ``console`` has the end of."""
_END_STATES = frozenset({"succeeded", "failed", "skipped"})


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """A line of the log."""

    time: str
    phase: str
    state: str
    text: str = ""


def logs(
    run: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="OPERATION|CLUSTER|CLAIM",
            help="An operation, or whose last one.",
            autocompletion=operation_subjects,
        ),
    ],
    follow: Follow = False,
) -> None:
    """Show what an operation did, with times. --follow goes on until it ends, and exits as `operation wait` does."""
    context = contexts.of(run)
    with context.client() as client:
        identifier = operation_of(client, name)
        log = _Log(context, client)
        if not follow:
            log.show(client.operations.get(identifier))
            return
        context.interrupted = f"Stopped; the operation goes on. To go on: stockyard logs {identifier} --follow"
        operation = _followed(context, client, identifier, log)
    if operation.status != "succeeded":
        raise typer.Exit(exit_code(OperationFailed(operation)))


def _followed(context: contexts.Context, client: Client, identifier: str, log: _Log) -> Operation:
    for operation in client.operations.watch(identifier, on_trouble=trouble(context)):
        log.show(operation)
        current = operation
        while not current.done and any(run.ended_at is None for run in current.runs):
            # lines of a run change nothing of the operation
            log.show_lines(current, wait=LINE_SECONDS)
            current = client.operations.get(identifier)
            log.show(current)
        if current.done:
            return current
    raise RuntimeError("a watch ends by an error only")


def operation_of(client: Client, name: str) -> str:
    """The id of an operation, or of the last one of a cluster or claim of that name. Raises ``BadInput``, ApiError."""
    if name.startswith("op_"):
        return name
    if name.startswith("ncl_"):
        last = client.node_claims.get(name).operation_id
    else:
        try:
            last = client.clusters.get(name).operation_id
        except ApiError as error:
            if error.status != 404 or name.startswith("clu_"):
                raise
            last = _of_claim(client, name)
    if not last:
        raise BadInput(f"{name} has no operation")
    return last


def _of_claim(client: Client, name: str) -> str | None:
    try:
        return client.node_claims.get(name).operation_id
    except ApiError as error:
        if error.status != 404:
            raise
        raise BadInput(f"there is no cluster and no claim {name}; operations go by their ids") from None


class _Log:
    """Writes each entry once."""

    def __init__(self, context: contexts.Context, client: Client) -> None:
        self._context = context
        self._client = client
        self._written: set[Entry] = set()
        self._cursor: str | None = None
        self._ended = False

    def show(self, operation: Operation) -> None:
        """Write what is new of the operation, and its end."""
        for entry in entries(operation):
            # what runs is told of once, though its time is that of the last look
            name = entry if entry.state != "running" else Entry("", entry.phase, entry.state, entry.text)
            if name not in self._written:
                self._written.add(name)
                self._line(entry)
        if operation.runs:
            self.show_lines(operation)
        if operation.done and not self._ended:
            self._ended = True
            self._end(operation)

    def show_lines(self, operation: Operation, wait: int = 0) -> None:
        """Write what the operation's runs have printed since; with ``wait`` so many seconds may pass until there is
        any."""
        lines, self._cursor = self._client.operations.log(operation.id, after=self._cursor, wait=wait)
        for line in lines:
            name = line.run if line.attempt == 1 else f"{line.run} (attempt {line.attempt})"
            text = f"{line.time:<24}  {name}: {line.text}".rstrip()
            self._context.out.print(text, soft_wrap=True, highlight=False, markup=False)

    def _line(self, entry: Entry) -> None:
        text = f"{entry.time:<24}  {entry.phase:<16} {entry.state:<9}  {entry.text}".rstrip()
        self._context.out.print(text, style=style_of(entry.state), soft_wrap=True, highlight=False, markup=False)

    def _end(self, operation: Operation) -> None:
        error = operation.error
        self._line(Entry(operation.updated_at or "", operation.kind, operation.status, error.cause if error else ""))
        if error is None:
            return
        console = error.console if not any(run.name == CONSOLE for run in operation.runs) else None
        for label, text in (("hint", error.hint), ("console", console)):
            for line in (text or "").splitlines():
                self._context.out.print(f"  {label}: {line}", soft_wrap=True, highlight=False, markup=False)


def entries(operation: Operation) -> list[Entry]:
    """Entries of the phases' known changes, in order of time."""
    return sorted((entry for phase in operation.phases for entry in _of_phase(operation, phase)), key=lambda e: e.time)


def _of_phase(operation: Operation, phase: Phase) -> Iterator[Entry]:
    attempt = f"attempt {phase.attempt}" if phase.attempt > 1 else ""
    if phase.started_at:
        yield Entry(phase.started_at, phase.name, "started", attempt)
    if phase.state in _END_STATES:
        yield Entry(phase.ended_at or operation.updated_at or "", phase.name, phase.state, phase.message or "")
    elif phase.state == "running" and phase.message:
        yield Entry(operation.updated_at or "", phase.name, phase.state, phase.message)
