"""Output for a job of GitHub Actions: annotations at the lines of files, and a summary of the run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from stockyard_client.cli.context import Context
from stockyard_client.cli.documents.field_sources import position_of
from stockyard_client.cli.output import field_lines, plans
from stockyard_client.cli.output.output import Form
from stockyard_client.cli.visible import echo
from stockyard_client.errors import ApiError, StockyardClientError
from stockyard_client.models import Plan

SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable with the file that a job's summary is added to."""
MOST_CHANGES = 200
"""Fields that a summary lists; a job's summary has at most 1 MiB."""
_FILE_AND_LINE = re.compile(r"(?P<file>[^:\n]+\.(?:ya?ml|json)):(?P<line>\d+)")


class PipelineForm(StrEnum):
    """Format of records, or of what a job of GitHub Actions shows."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    GITHUB = "github"

    @property
    def form(self) -> Form:
        """The format of records."""
        return Form.TABLE if self is PipelineForm.GITHUB else Form(self.value)

    @property
    def is_github(self) -> bool:
        """Whether annotations and a summary are written."""
        return self is PipelineForm.GITHUB


PipelineOutput = Annotated[
    PipelineForm, typer.Option("--output", "-o", help="How to write records; github adds annotations and a summary.")
]


@contextmanager
def annotated(context: Context, *, on: bool) -> Iterator[None]:
    """Annotate the lines that a failure within is about."""
    try:
        yield
    except StockyardClientError as error:
        if on:
            for pointer, text in _faults(error):
                _annotate("error", text, _position(context, pointer, text))
            _add(context, [f"**Failed:** {_plain(str(error))}", ""])
        raise


def annotate_warnings(context: Context, warnings: Iterable[Any]) -> None:
    """Write an annotation for each remark: warnings, and notices for what only tells."""
    for line in warnings:
        if isinstance(line, dict) and "detail" in line:
            level, text = "notice" if line.get("note") else "warning", str(line["detail"])
            _annotate(level, text, _position(context, str(line.get("pointer") or ""), text))


def summarize(context: Context, title: str, plan: Plan, remarks: Sequence[str] = ()) -> None:
    """Add a plan to the job's summary: what is made, changed and removed, and the price before and after."""
    lines = [f"### {_plain(title)}", "", plans.verdict(plan) or "See below.", ""]
    rows = [("+", _title(entry), "") for entry in plan.creates]
    changes = [entry for entry in plan.changes if field_lines.is_change(entry)]
    rows += [("~", _title(entry), _change(entry)) for entry in changes[:MOST_CHANGES]]
    rows += [("-", _title(entry), "") for entry in plan.deletes]
    if rows:
        lines += ["| | what | field |", "| -- | -- | -- |"]
        lines += [f"| {sign} | {_plain(title_of_thing)} | {_plain(field)} |" for sign, title_of_thing, field in rows]
        lines.append("")
    if len(changes) > MOST_CHANGES:
        lines += [f"And {len(changes) - MOST_CHANGES} more fields.", ""]
    if plan.price_before is not None:
        lines += [f"Price now: {plans.amount(plan.price_before)}", ""]
    if plan.price is not None and (plan.price.items or plan.price_before is not None):
        lines += [f"Price then: {plans.amount(plan.price)}", ""]
    _add(context, [*lines, *(f"- {_plain(remark)}" for remark in remarks), ""])


def _position(context: Context, pointer: str | None, text: str) -> tuple[str, int | None] | None:
    """File and line: of the field, else those that a sentence about a file begins with."""
    if pointer is not None:
        return position_of(pointer, context.field_sources)
    begins = _FILE_AND_LINE.match(text)
    return (begins["file"], int(begins["line"])) if begins else None


def _annotate(level: str, text: str, position: tuple[str, int | None] | None) -> None:
    parts = [f"file={_escaped(position[0], ':,')}"] if position else []
    if position and position[1] is not None:
        parts.append(f"line={position[1]}")
    echo(f"::{level}{' ' if parts else ''}{','.join(parts)}::{_escaped(text)}")


def _faults(error: StockyardClientError) -> list[tuple[str | None, str]]:
    if isinstance(error, ApiError) and error.errors:
        return [(problem.pointer, problem.detail) for problem in error.errors]
    return [(None, str(error))]


def _title(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    return f"{str(entry.get('kind', '')).replace('-', ' ')} {entry.get('name', '')}".strip()


def _change(entry: dict[str, Any]) -> str:
    return f"{entry.get('field') or entry.get('pointer')}: {entry.get('before')} → {entry.get('after')}"


def _add(context: Context, lines: Sequence[str]) -> None:
    path = context.environment.get(SUMMARY)
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


def _plain(text: str) -> str:
    """The text as one cell of a table, without any markup of its own."""
    for sign in "\\`|<>*_[]":
        text = text.replace(sign, f"&#{ord(sign)};")
    return " ".join(text.split())


def _escaped(text: str, more: str = "") -> str:
    for sign in "%\r\n" + more:
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text
