"""``stockyard apply``: manifests from files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.input.confirmations import Yes, confirm
from stockyard_client.cli.input.options import DryRun, Timeout, Wait
from stockyard_client.cli.manifests.removals import Doomed, remove, verb
from stockyard_client.cli.manifests.sets import (
    Folder,
    Selection,
    SetName,
    Take,
    plan_folder,
    read_folder,
    say_kept,
    undone,
)
from stockyard_client.cli.output import plans, progress
from stockyard_client.cli.output.github import PipelineForm, PipelineOutput, annotate_warnings, annotated, summarize
from stockyard_client.cli.output.node_tables import APPLIED
from stockyard_client.cli.output.output import Form, show_many
from stockyard_client.errors import ApiError, StockyardClientError
from stockyard_client.node_models import Applied

if TYPE_CHECKING:
    from stockyard_client.client import Client
    from stockyard_client.models import Plan
    from stockyard_client.resources.nodes import AppliedList

_OF_NODES = frozenset({"NodeClaim"})
"""Kinds whose operations are of single nodes."""
Files = Annotated[
    list[str],
    typer.Option(
        "--file", "-f", metavar="PATH", help="Manifests: a file, a folder, or - (standard input); may be repeated."
    ),
]
Recursive = Annotated[bool, typer.Option("--recursive", "-R", help="Look into the folders below a folder as well.")]
OfCluster = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="CLUSTER", help="Whose pools and claims these are, where a document does not say it."
    ),
]


def apply(
    run: typer.Context,
    file: Files,
    recursive: Recursive = False,
    cluster: OfCluster = None,
    set_name: SetName = None,
    selector: Selection = None,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="Remove what the set has applied before and no document names any more. Without a set: the pools of"
            " a vcluster.yaml are all.",
        ),
    ] = False,
    take: Take = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: PipelineOutput = PipelineForm.TABLE,
) -> None:
    """Make what manifests ask for, and change what differs. All are checked before one is stored. With --wait the
    operations on clusters are waited for, with the pools and members that they order. With --set a plan comes first."""
    context = contexts.of(run)
    if take and set_name is None:
        raise BadInput("--take needs --set")
    options = Options(yes=yes, dry_run=dry_run, wait=wait, timeout=timeout, output=output)
    with annotated(context, on=output.is_github):
        folder = read_folder(context, file, recursive=recursive, cluster=cluster, selector=selector, set_name=set_name)
        folder = replace(folder, take=take, prune=prune)
        with context.client() as client:
            if set_name is None:
                _apply_documents(context, client, folder, options)
            else:
                _apply_set(context, client, folder, options)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one run."""

    yes: bool
    dry_run: bool
    wait: bool
    timeout: float | None
    output: PipelineForm


def _apply_documents(context: contexts.Context, client: Client, folder: Folder, options: Options) -> None:
    """Apply documents that are of no set."""
    if options.dry_run:
        plan = client.manifests.plan(folder.documents, prune=folder.prune)
        plans.show(context, options.output.form, plan)
        if options.output.is_github:
            annotate_warnings(context, plan.warnings)
            summarize(context, "Plan", plan)
        return
    if folder.prune:
        _confirm(context, client, folder.documents, yes=options.yes)
    results = client.manifests.apply(folder.documents, prune=folder.prune)
    plans.warn(context, results.every_warning)
    _wait(context, client, results, options)
    show_many(context, options.output.form, APPLIED, results)


def _apply_set(context: contexts.Context, client: Client, folder: Folder, options: Options) -> None:
    """Apply documents as those of a set: show the plan, ask where something is removed, apply, remove."""
    planned = plan_folder(client, folder)
    remarks = say_kept(context, planned)
    form = options.output.form
    if options.output.is_github:
        annotate_warnings(context, [*planned.plan.warnings, *({"detail": remark} for remark in remarks)])
        title = f"{'Plan' if options.dry_run else 'Apply'} of {folder.set_name}"
        summarize(context, title, planned.plan, remarks)
    if options.dry_run:
        plans.show(context, form, planned.plan)
        return
    if form in {Form.TABLE, Form.WIDE} and not planned.is_empty:
        plans.show(context, form, planned.plan, is_dry_run=False)
    check_removals(context, planned.removals, yes=options.yes)
    results = _applied(context, client, folder, planned.plan)
    plans.warn(context, results.every_warning)
    _wait(context, client, results, options)
    records = list(results)

    def removed(thing: Doomed) -> None:
        action = verb(thing, wait=options.wait)
        records.append(Applied(kind=thing.noun, name=thing.name, id=thing.id or "", action=action))

    codes = remove(
        context,
        client,
        planned.removals,
        ignore_missing=True,
        wait=options.wait,
        timeout=options.timeout,
        on_removed=removed,
    )
    show_many(context, options.output.form, APPLIED, records)
    if codes:
        raise typer.Exit(codes[0])


def check_removals(context: contexts.Context, things: Sequence[Doomed], *, yes: bool) -> None:
    """Ask before things are removed. :class:`BadInput` where nobody can be asked and a cluster would go."""
    clusters = [thing for thing in things if thing.noun == "cluster"]
    if clusters and not yes and not context.asks:
        names = ", ".join(thing.name for thing in clusters)
        raise BadInput(f"cluster {names} would be deleted with everything that runs in it: give --yes")
    if things:
        question = "Delete it?" if len(things) == 1 else f"Delete these {len(things)}?"
        confirm(context, (f"- {thing.title}" for thing in things), yes=yes, question=question)


def _applied(context: contexts.Context, client: Client, folder: Folder, before: Plan) -> AppliedList:
    """Apply; after a failure in the middle say how far it went."""
    try:
        return client.manifests.apply(folder.documents, set_name=folder.set_name, take=folder.take)
    except StockyardClientError as error:
        if isinstance(error, ApiError) and error.status < 500:  # refused: nothing was written
            raise
        try:
            after = client.manifests.plan(folder.documents, set_name=folder.set_name, take=folder.take)
        except StockyardClientError:
            context.say("What was done before is not known: `stockyard diff` tells.")
            raise error from None
        done, remaining = undone(before, after)
        context.say(f"Done before the failure: {', '.join(done) or 'nothing'}.")
        context.say(f"Not done: {', '.join(remaining) or 'nothing'}. Apply again; it goes on from there.")
        raise


def _wait(context: contexts.Context, client: Client, results: AppliedList, options: Options) -> None:
    for result in results if options.wait else ():
        if result.operation_id and result.kind not in _OF_NODES:
            progress.wait_for_cluster(context, client, client.clusters.get(result.id), options.timeout)


def _confirm(context: contexts.Context, client: Client, documents: Sequence[dict[str, Any]], *, yes: bool) -> None:
    """Say which pools would be deleted, and ask; nothing is asked where none would be."""
    if yes or not context.asks:
        return
    plan = client.manifests.plan(documents, prune=True)
    names = [str(entry.get("name")) for entry in plan.deletes if isinstance(entry, dict)]
    if names:
        lines = [f"Pool {name} is deleted, and its nodes are drained and given back." for name in names]
        confirm(context, lines, yes=yes, question="Delete them?" if len(names) > 1 else "Delete it?")
