"""``stockyard version`` and ``stockyard health``."""

from __future__ import annotations

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.output.output import Form, Output, write_document
from stockyard_client.cli.visible import echo
from stockyard_client.version import VERSION


def version(output: Output = Form.TABLE) -> None:
    """Show the version of this command."""
    if output in {Form.JSON, Form.YAML}:
        write_document(output, {"name": "stockyard-client", "version": VERSION})
    else:
        echo(f"stockyard {VERSION}")


def health(run: typer.Context, output: Output = Form.TABLE) -> None:
    """Say whether the API answers. No login is needed."""
    context = contexts.of(run)
    with context.client() as client:
        answer = client.health()
    if output in {Form.JSON, Form.YAML}:
        write_document(output, answer)
    else:
        echo(answer.get("status", "unknown"))
