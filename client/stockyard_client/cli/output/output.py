"""Records on stdout, in the form the caller asked for."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import typer

from stockyard_client.base_models import Model
from stockyard_client.cli.context import Context
from stockyard_client.cli.output.tables import Column, Printer, rows_of, write_table
from stockyard_client.cli.visible import echo, json_text, yaml_text
from stockyard_client.models import CloudAccount, Cluster, Event, Operation
from stockyard_client.part_models import Condition

M = TypeVar("M", bound=Model)


class Form(StrEnum):
    """Format of records."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


Output = Annotated[Form, typer.Option("--output", "-o", help="How to write records.")]


def region_of(cluster: Cluster) -> str | None:
    """Region of AWS, or the data center that the control group on Cudo names; None: the account's own."""
    groups = cluster.settings.get("autoscaler_node_groups") or []
    control = (group.get("data_center_id") for group in groups if group.get("role") == "control")
    return cluster.settings.get("region_name") or next(control, None)


def version_of(cluster: Cluster) -> str | None:
    """The minor version of Kubernetes."""
    return cluster.document().get("kubernetes_version")


FAULTS = frozenset({"Degraded"})
"""Conditions that tell of a fault when they are ``True``."""


def unmet(conditions: Iterable[Condition]) -> list[Condition]:
    """The conditions with an unhealthy status, failed ones first."""
    lacking = [c for c in conditions if c.status != ("False" if c.type in FAULTS else "True")]
    return sorted(lacking, key=lambda c: c.status == "Unknown")


def why_of(cluster: Cluster) -> str | None:
    """Most important fact of a cluster for somebody who sees the list: the phase it is in, why it failed, what it
    lacks."""
    extra = cluster.document()
    if cluster.status in {"preparing", "deleting"} and not extra.get("message"):
        return cluster.phase
    texts = [extra.get("reason"), extra.get("message")]
    if not any(texts):
        lacking = next(iter(unmet(cluster.conditions)), None)
        texts = [lacking.reason, lacking.message] if lacking is not None else []
    return ": ".join(str(text) for text in texts if text) or None


CLUSTERS: Printer[Cluster] = Printer(
    (
        Column("NAME", lambda c: c.name),
        Column("STATUS", lambda c: c.status),
        Column("VERSION", version_of),
        Column("PROVIDER", lambda c: c.provider),
        Column("REGION", region_of),
        Column("AGE", lambda c: c.created_at, is_age=True),
        Column("WHY", why_of, give=1),
        Column("PHASE", lambda c: c.phase, wide=True),
        Column("ACCOUNT", lambda c: c.cloud_account_id, wide=True),
        Column("CREATED", lambda c: c.created_at, wide=True),
        Column("ID", lambda c: c.id, wide=True),
        Column("CLIENT ID", lambda c: c.client_id, wide=True),
        Column("OPERATION", lambda c: c.operation_id, wide=True),
        Column("DESCRIPTION", lambda c: c.description, wide=True),
    ),
    lambda c: c.name,
)
ONE_CLUSTER: Printer[Cluster] = Printer(
    (
        *(column for column in CLUSTERS.columns if not column.wide),
        Column("BASTION", lambda c: c.document().get("bastion")),
        Column("SNAPSHOT", lambda c: c.document().get("last_snapshot")),
        *(column for column in CLUSTERS.columns if column.wide),
    ),
    CLUSTERS.name,
)
"""Of a cluster by itself; in a list few have a bastion or snapshots of etcd."""
ACCOUNTS: Printer[CloudAccount] = Printer(
    (
        Column("ID", lambda a: a.id),
        Column("NAME", lambda a: a.name, give=1),
        Column("PROVIDER", lambda a: a.provider),
        Column("VERIFICATION", lambda a: a.verification),
        Column("AGE", lambda a: a.created_at, is_age=True),
        Column("MESSAGE", lambda a: a.verification_message, give=2),
        Column("CREATED", lambda a: a.created_at, wide=True),
        Column("DESCRIPTION", lambda a: a.description, wide=True),
    ),
    lambda a: a.id,
)
VERIFIED: Printer[CloudAccount] = Printer(
    tuple(column for column in ACCOUNTS.columns if column.heading != "MESSAGE"), ACCOUNTS.name
)
"""Of an account whose message is said beside the table, as long as it is."""
OPERATIONS: Printer[Operation] = Printer(
    (
        Column("ID", lambda o: o.id),
        Column("KIND", lambda o: o.kind, give=1),
        Column("SUBJECT", lambda o: o.subject_name or o.subject, give=3),
        Column("STATUS", lambda o: o.status),
        Column("PROGRESS", lambda o: f"{o.progress}%", spare=True),
        Column("PHASE", lambda o: next((p.name for p in o.phases if p.state in {"running", "failed"}), None), give=2),
        Column("AGE", lambda o: o.created_at, is_age=True),
        Column("SUBJECT ID", lambda o: o.subject, wide=True),
        Column("CREATED", lambda o: o.created_at, wide=True),
        Column("UPDATED", lambda o: o.updated_at, wide=True),
        Column("CAUSE", lambda o: o.error.cause if o.error else None, wide=True),
    ),
    lambda o: o.id,
)
EVENTS: Printer[Event] = Printer(
    (
        Column("AGE", lambda e: e.time, brief=True, is_age=True),
        Column("TIME", lambda e: e.time, wide=True),
        Column("REASON", lambda e: e.reason, give=1),
        Column("MESSAGE", lambda e: e.message, give=2),
        Column("SEQUENCE", lambda e: e.sequence, wide=True),
        Column("ACTOR", lambda e: e.actor, wide=True),
        Column("ID", lambda e: e.id, wide=True),
    ),
    lambda e: e.id,
)


def show_many(context: Context, form: Form, printer: Printer[M], records: Iterable[M]) -> None:
    """Writes ``records``; JSON and YAML as one list."""
    items = list(records)
    if form in {Form.JSON, Form.YAML}:
        write_document(form, [record.document() for record in items])
    elif form is Form.NAME:
        for record in items:
            echo(printer.name(record))
    elif items:
        columns = printer.columns_of(wide=form is Form.WIDE)
        rows, give = rows_of(context, columns, items), [column.give for column in columns]
        spare = [column.spare for column in columns]
        write_table(context, [column.heading for column in columns], rows, give, spare)
    else:
        context.say("Nothing found.")


def show_one(context: Context, form: Form, printer: Printer[M], record: M) -> None:
    """Writes one record; JSON and YAML as one object."""
    if form in {Form.JSON, Form.YAML}:
        write_document(form, record.document())
    else:
        show_many(context, form, printer, [record])


def write_yaml_or_json(form: Form, document: Any) -> None:
    """Writes what has no table: as YAML unless JSON is asked for."""
    write_document(Form.JSON if form is Form.JSON else Form.YAML, document)


def write_document(form: Form, document: Any) -> None:
    """Writes ``document`` as JSON or YAML."""
    if form is Form.YAML:
        echo(yaml_text(document))
    else:
        echo(json_text(document, indent=2))
