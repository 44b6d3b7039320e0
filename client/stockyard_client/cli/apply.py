"""``stockyard apply``: manifests from files."""

from __future__ import annotations

from typing import Annotated

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli import plans
from stockyard_client.cli.inputs import read_documents
from stockyard_client.cli.node_sheets import APPLIED
from stockyard_client.cli.options import DryRun
from stockyard_client.cli.output import Form, Output, show_many


def apply(
    run: typer.Context,
    file: Annotated[
        list[str], typer.Option("--file", "-f", help="JSON or YAML manifests; - reads standard input; may be repeated.")
    ],
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Make what the manifests ask for and change what differs; all are checked before one is stored."""
    context = contexts.of(run)
    documents = [document for source in file for document in read_documents(source)]
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.manifests.plan(documents))
            return
        results = client.manifests.apply(documents)
    show_many(context, output, APPLIED, results)
    for result in results:
        for warning in result.warnings:
            context.say(f"Warning: {warning.get('pointer') or '/'}: {warning.get('detail', '')}", "yellow")
