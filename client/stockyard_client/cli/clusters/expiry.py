"""``stockyard cluster expire``: when a cluster's deletion begins by itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.input.completion import cluster_names
from stockyard_client.cli.input.inputs import seconds
from stockyard_client.cli.input.options import DryRun
from stockyard_client.cli.output import plans
from stockyard_client.cli.output.output import CLUSTERS, Form, Output, show_one

NEVER = "never"
Expires = Annotated[
    str | None, typer.Option("--expires", metavar="WHEN", help="Delete it then: in 8h, 2d ..., or a time (RFC 3339).")
]


def expires_at(text: str, now: float) -> str:
    """The time that is meant, by itself or as a duration from ``now``, which is in seconds since 1970. Raises
    :class:`BadInput`."""
    try:
        return datetime.fromtimestamp(now + seconds(text), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        pass
    if "T" not in text.upper():
        raise BadInput(f"{text!r} is no time: write 8h, 2d, or 2026-12-24T18:00:00Z")
    return text


def expire(
    run: typer.Context,
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="Name or id.", autocompletion=cluster_names)],
    when: Annotated[str, typer.Argument(metavar="WHEN", help="In 8h, 2d ..., a time (RFC 3339), or never.")],
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Say when a cluster's deletion begins by itself; a later time, or never, keeps it."""
    context = contexts.of(run)
    patch: dict[str, Any] = {"expires_at": None if when == NEVER else expires_at(when, context.now())}
    with context.client() as client:
        record = client.clusters.get(cluster)
        if dry_run:
            plans.show(context, output, client.clusters.plan_update(record, patch))
            return
        changed = client.clusters.update(record, patch)
        ends = changed.document().get("expires_at")
        context.say(f"The deletion of {changed.name} begins at {ends}." if ends else f"{changed.name} stays.")
    show_one(context, output, CLUSTERS, changed)
