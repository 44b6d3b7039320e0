"""``stockyard metrics``: the numbers that Prometheus scrapes."""

from __future__ import annotations

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.visible import echo


def metrics(run: typer.Context) -> None:
    """Print the numbers that Prometheus scrapes, as text."""
    context = contexts.of(run)
    with context.client() as client:
        echo(client.metrics.text().rstrip("\n"))
