"""Parts of descriptions: facts, and sections below them. Nothing is cut: long lines wrap between words."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from stockyard_client.base_models import Model
from stockyard_client.cli.context import Context
from stockyard_client.cli.output.ages import age
from stockyard_client.cli.output.output import unmet
from stockyard_client.cli.output.progress import symbol
from stockyard_client.cli.output.tables import Printer, rows_of, style_of, write_table
from stockyard_client.models import Event, Operation
from stockyard_client.part_models import Condition

EVENTS_SHOWN = 5
INDENT = "  "


def title(context: Context, name: str, state: str, text: str = "") -> None:
    """The first line: what is described, and how it is. A text that has no room there comes below it."""
    line = Text.assemble((name, "bold"), "  ", (state, style_of(state) or ""))
    if context.room is not None and line.cell_len + 2 + cell_len(text) > context.room:
        context.out.print(line, soft_wrap=True)
        paragraph(context, text, "dim")
        return
    context.out.print(line.append(f"  {text}" if text else "", style="dim"), soft_wrap=True)


def facts(context: Context, values: Mapping[str, Any]) -> None:
    """A line for each fact that is known, in two columns."""
    known_facts = {label: str(value) for label, value in values.items() if value not in (None, "")}
    width = max((len(label) for label in known_facts), default=0) + 2
    for label, value in known_facts.items():
        lines = _wrapped(context, value, INDENT + " " * width)
        context.out.print(Text.assemble((INDENT + label.ljust(width), "dim"), "\n".join(lines)), soft_wrap=True)


def heading(context: Context, text: str) -> None:
    """The first line of a section."""
    context.out.print()
    context.out.print(Text(text, style="bold"), soft_wrap=True)


def paragraph(context: Context, text: str, style: str = "", indent: str = INDENT) -> None:
    """A text below a heading."""
    context.out.print(Text(indent + "\n".join(_wrapped(context, text, indent)), style=style), soft_wrap=True)


def table(context: Context, name: str, printer: Printer[Any], records: Sequence[Model], more: str = "") -> None:
    """A section with a table; nothing where there are no records. ``more`` says how to see others."""
    if not records:
        return
    heading(context, name)
    columns = printer.columns_of(wide=False)
    headings, give = [column.heading for column in columns], [column.give for column in columns]
    spare = [column.spare for column in columns]
    write_table(context, headings, rows_of(context, columns, records), give, spare)
    if more:
        paragraph(context, more, "dim", "")


def conditions(context: Context, all_conditions: Iterable[Condition]) -> None:
    """Show the conditions that do not hold, each with its reason; one line where everything does."""
    listed = list(all_conditions)
    lacking = unmet(listed)
    if not listed:
        return
    if not lacking:
        heading(context, f"Conditions  all {len(listed)} hold" if len(listed) > 1 else "Conditions  the only one holds")
        return
    heading(context, f"Conditions  {len(listed) - len(lacking)} of {len(listed)} hold")
    for condition in lacking:
        text = ": ".join(part for part in (condition.reason, condition.message) if part)
        first = Text.assemble(INDENT, (condition.status, style_of(condition.status) or "yellow"), f"  {condition.type}")
        context.out.print(first, soft_wrap=True)
        paragraph(context, text, "dim", INDENT * 2)


def operation(context: Context, last: Operation | None, *, all_phases: bool = False) -> None:
    """The last operation: of its phases what runs or has failed, or all of them."""
    if last is None:
        return
    heading(context, "Phases" if all_phases else f"Last operation  {last.kind}")
    if not all_phases:
        state = Text.assemble(INDENT, (last.status, style_of(last.status) or ""), f"  {last.progress}%  {last.id}")
        context.out.print(state, soft_wrap=True)
    if last.status != "succeeded" or all_phases:
        for phase in last.phases:
            if all_phases or phase.state in {"running", "failed"}:
                text = f"{symbol(context.out, phase.state)} {phase.name}  {phase.message or ''}".rstrip()
                paragraph(context, text, style_of(phase.state) or "", INDENT * 2)
    if last.error is not None:
        paragraph(context, f"{last.error.error_type}: {last.error.cause}", "red", INDENT * 2)
        if last.error.hint:
            paragraph(context, f"Hint: {last.error.hint}", "", INDENT * 2)
        if last.error.console:
            paragraph(context, "Console of the machine, its last lines:", "dim", INDENT * 2)
            context.out.print(Text(last.error.console, style="dim"), soft_wrap=True)


def events(context: Context, newest: Sequence[Event], more: str = "") -> None:
    """The newest events, the last one at the end."""
    if not newest:
        return
    heading(context, "Events")
    now = context.now()
    for event in newest:
        message = (event.message or "").removeprefix(f"{event.reason}: ")
        text = ": ".join(part for part in (event.reason, message) if part)
        paragraph(context, f"{age(event.time, now) or '-':>6}  {text}", "", INDENT)
    if more:
        paragraph(context, more, "dim")


def following(context: Context, *commands: str) -> None:
    """Show the commands to type next."""
    if commands:
        heading(context, "Next")
        for command in commands:
            context.out.print(Text(INDENT + command), soft_wrap=True)


def _wrapped(context: Context, text: str, indent: str) -> list[str]:
    """The lines of a text; on a terminal those after the first are indented."""
    if context.room is None:
        return [text]
    room = max(20, context.room - len(indent))
    lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    return [lines[0], *(indent + line for line in lines[1:])]
