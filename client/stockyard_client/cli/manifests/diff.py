"""``stockyard diff``: what applying manifests would change."""

from __future__ import annotations

import typer
from rich.text import Text

from stockyard_client.cli import context as contexts
from stockyard_client.cli.failures import FAILURE, USAGE, exit_code, explain
from stockyard_client.cli.input.inputs import read_manifests
from stockyard_client.cli.manifests.apply import Files, OfCluster, Recursive, of_cluster
from stockyard_client.cli.output import field_lines, plans
from stockyard_client.cli.output.output import Form, Output, write_document
from stockyard_client.errors import StockyardClientError
from stockyard_client.models import Plan

DIFFERS = 1


def diff(
    run: typer.Context,
    file: Files,
    recursive: Recursive = False,
    cluster: OfCluster = None,
    output: Output = Form.TABLE,
) -> None:
    """Show what apply would change, field by field. Exit 0: nothing; 1: something; 2 and more: it failed."""
    context = contexts.of(run)
    try:
        documents = [of_cluster(document, cluster) for document in read_manifests(context, file, recursive=recursive)]
        with context.client() as client:
            plan = client.manifests.plan(documents)
    except StockyardClientError as error:
        explain(context, error)
        code = exit_code(error)
        # 1 says that something differs
        raise typer.Exit(USAGE if code == FAILURE else code) from None
    if output in {Form.JSON, Form.YAML}:
        write_document(output, plan.document())
    else:
        _draw(context, plan)
    if plan.creates or plan.changes:
        raise typer.Exit(DIFFERS)
    context.say("Nothing differs.")


def _draw(context: contexts.Context, plan: Plan) -> None:
    for line in plan.creates:
        text = f"{str(line.get('kind', '')).replace('-', ' ')} {line.get('name', '')}".strip()
        context.out.print(Text(f"+ {text}", style="green"), soft_wrap=True)
    field_lines.draw(context, filter(field_lines.is_change, plan.changes))
    plans.warn(context, plan.warnings)
