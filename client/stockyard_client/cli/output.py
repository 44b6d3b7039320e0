"""Records on stdout, in the form the caller asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Generic, TypeVar

import typer
from rich.text import Text

from stockyard_client.cli.context import Context
from stockyard_client.models import CloudAccount, Cluster, Event, Model, Operation

M = TypeVar("M", bound=Model)


class Form(StrEnum):
    """How records are written."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


Output = Annotated[Form, typer.Option("--output", "-o", help="How to write records.")]

_STYLES = {
    "ready": "green",
    "succeeded": "green",
    "verified": "green",
    "Available": "green",
    "created": "green",
    "True": "green",
    "failed": "red",
    "Failed": "red",
    "False": "red",
    "preparing": "yellow",
    "running": "yellow",
    "queued": "yellow",
    "reverted": "yellow",
    "Ready": "green",
    "Applying": "yellow",
    "Pending": "yellow",
    "changed": "yellow",
    "deleting": "magenta",
    "Deleting": "magenta",
    "unverified": "yellow",
}


@dataclass(frozen=True, slots=True)
class Column(Generic[M]):
    """One column: heading, value, and whether only ``wide`` shows it."""

    heading: str
    value: Callable[[M], Any]
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Sheet(Generic[M]):
    """How records of one kind are tabulated, and what ``-o name`` prints."""

    columns: tuple[Column[M], ...]
    name: Callable[[M], Any]


def region_of(cluster: Cluster) -> str | None:
    """Region of AWS, or the data center that the control group on Cudo names; None: the account's own."""
    groups = cluster.settings.get("autoscaler_node_groups") or []
    control = (group.get("data_center_id") for group in groups if group.get("role") == "control")
    return cluster.settings.get("region_name") or next(control, None)


CLUSTERS: Sheet[Cluster] = Sheet(
    (
        Column("NAME", lambda c: c.name),
        Column("STATUS", lambda c: c.status),
        Column("PHASE", lambda c: c.phase),
        Column("PROVIDER", lambda c: c.provider),
        Column("ACCOUNT", lambda c: c.cloud_account_id),
        Column("REGION", region_of),
        Column("CREATED", lambda c: c.created_at),
        Column("ID", lambda c: c.id, wide=True),
        Column("CLIENT ID", lambda c: c.client_id, wide=True),
        Column("OPERATION", lambda c: c.operation_id, wide=True),
        Column("DESCRIPTION", lambda c: c.description, wide=True),
    ),
    lambda c: c.name,
)
ONE_CLUSTER: Sheet[Cluster] = Sheet(
    (
        *(column for column in CLUSTERS.columns if not column.wide),
        Column("BASTION", lambda c: (c.model_extra or {}).get("bastion")),
        Column("SNAPSHOT", lambda c: (c.model_extra or {}).get("last_snapshot")),
        *(column for column in CLUSTERS.columns if column.wide),
    ),
    CLUSTERS.name,
)
"""Of a cluster by itself; in a list few have a bastion or snapshots of etcd."""
ACCOUNTS: Sheet[CloudAccount] = Sheet(
    (
        Column("ID", lambda a: a.id),
        Column("NAME", lambda a: a.name),
        Column("PROVIDER", lambda a: a.provider),
        Column("VERIFICATION", lambda a: a.verification),
        Column("CREATED", lambda a: a.created_at),
        Column("MESSAGE", lambda a: a.verification_message, wide=True),
        Column("DESCRIPTION", lambda a: a.description, wide=True),
    ),
    lambda a: a.id,
)
OPERATIONS: Sheet[Operation] = Sheet(
    (
        Column("ID", lambda o: o.id),
        Column("KIND", lambda o: o.kind),
        Column("STATUS", lambda o: o.status),
        Column("PROGRESS", lambda o: f"{o.progress}%"),
        Column("PHASE", lambda o: next((p.name for p in o.phases if p.state in {"running", "failed"}), None)),
        Column("UPDATED", lambda o: o.updated_at),
        Column("SUBJECT", lambda o: o.subject, wide=True),
        Column("CAUSE", lambda o: o.error.cause if o.error else None, wide=True),
    ),
    lambda o: o.id,
)
EVENTS: Sheet[Event] = Sheet(
    (
        Column("TIME", lambda e: e.time),
        Column("REASON", lambda e: e.reason),
        Column("MESSAGE", lambda e: e.message),
        Column("SEQUENCE", lambda e: e.sequence, wide=True),
        Column("ACTOR", lambda e: e.actor, wide=True),
        Column("ID", lambda e: e.id, wide=True),
    ),
    lambda e: e.id,
)


def show_many(context: Context, form: Form, sheet: Sheet[M], records: Iterable[M]) -> None:
    """Writes ``records``; JSON and YAML as one list."""
    items = list(records)
    if form in {Form.JSON, Form.YAML}:
        write_document(form, [record.document() for record in items])
    elif form is Form.NAME:
        for record in items:
            typer.echo(sheet.name(record))
    elif items:
        columns = [column for column in sheet.columns if form is Form.WIDE or not column.wide]
        rows = [[cell(column.value(record)) for column in columns] for record in items]
        write_table(context, [column.heading for column in columns], rows)
    else:
        context.say("Nothing found.")


def show_one(context: Context, form: Form, sheet: Sheet[M], record: M) -> None:
    """Writes one record; JSON and YAML as one object."""
    if form in {Form.JSON, Form.YAML}:
        write_document(form, record.document())
    else:
        show_many(context, form, sheet, [record])


def write_document(form: Form, document: Any) -> None:
    """Writes ``document`` as JSON or YAML."""
    if form is Form.YAML:
        import yaml

        typer.echo(yaml.safe_dump(document, sort_keys=False, allow_unicode=True).rstrip("\n"))
    else:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def write_table(context: Context, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Aligned columns without frames, so that a line is a record for ``grep`` and ``awk``."""
    widths = [max(len(row[place]) for row in [headings, *rows]) for place in range(len(headings))]
    for number, row in enumerate([headings, *rows]):
        line = Text()
        for place, cell in enumerate(row):
            # the last column is not padded: no line ends in blanks
            padded = cell.ljust(widths[place] + 3) if place < len(row) - 1 else cell
            line.append(padded, style="bold" if number == 0 else style_of(cell))
        context.out.print(line, soft_wrap=True)


def style_of(state: str) -> str | None:
    """The colour of a status word."""
    return _STYLES.get(state)


def cell(value: Any) -> str:
    """A value as a table shows it, on one line."""
    text = "-" if value is None or value == "" else str(value)
    return " ".join(text.split())
