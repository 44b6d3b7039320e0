"""``stockyard diff``: what applying manifests would change."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer
from rich.text import Text

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.failures import FAILURE, USAGE, exit_code, explain
from stockyard_client.cli.manifests.apply import Files, OfCluster, Recursive
from stockyard_client.cli.manifests.sets import Selection, SetName, Take, plan_folder, read_folder, say_kept
from stockyard_client.cli.output import field_lines, plans
from stockyard_client.cli.output.github import PipelineForm, PipelineOutput, annotate_warnings, annotated, summarize
from stockyard_client.cli.output.output import Form, write_document
from stockyard_client.errors import StockyardClientError
from stockyard_client.models import Plan

DIFFERS = 1


def diff(
    run: typer.Context,
    file: Files,
    recursive: Recursive = False,
    cluster: OfCluster = None,
    set_name: SetName = None,
    selector: Selection = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="What the set has applied before and no document names differs, too.")
    ] = False,
    take: Take = False,
    output: PipelineOutput = PipelineForm.TABLE,
) -> None:
    """Show what apply would change, field by field. Exit 0: nothing; 1: something; 2 and more: it failed."""
    context = contexts.of(run)
    try:
        if set_name is None and (prune or take):
            raise BadInput("--prune and --take need --set")
        with annotated(context, on=output.is_github), context.client() as client:
            folder = read_folder(
                context, file, recursive=recursive, cluster=cluster, selector=selector, set_name=set_name
            )
            planned = plan_folder(client, replace(folder, prune=prune, take=take))
            plan = planned.plan
    except StockyardClientError as error:
        explain(context, error)
        code = exit_code(error)
        # 1 says that something differs
        raise typer.Exit(USAGE if code == FAILURE else code) from None
    if output.form in {Form.JSON, Form.YAML}:
        write_document(output.form, plan.document())
    else:
        _draw(context, plan)
    remarks = say_kept(context, planned)
    if output.is_github:
        annotate_warnings(context, [*plan.warnings, *({"detail": remark} for remark in remarks)])
        summarize(context, f"Difference of {set_name or 'the manifests'}", plan, remarks)
    if not planned.is_empty:
        raise typer.Exit(DIFFERS)
    context.say("Nothing differs.")


def _draw(context: contexts.Context, plan: Plan) -> None:
    for line in plan.creates:
        text = f"{str(line.get('kind', '')).replace('-', ' ')} {line.get('name', '')}".strip()
        context.out.print(Text(f"+ {text}", style="green"), soft_wrap=True)
    field_lines.draw(context, filter(field_lines.is_change, plan.changes))
    for line in plan.deletes:
        text = f"{str(line.get('kind', '')).replace('-', ' ')} {line.get('name', '')}".strip()
        context.out.print(Text(f"- {text}", style="red"), soft_wrap=True)
    plans.warn(context, plan.warnings)
