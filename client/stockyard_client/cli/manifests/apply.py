"""``stockyard apply``: manifests from files."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.input.confirmations import Yes, confirm
from stockyard_client.cli.input.inputs import read_manifests
from stockyard_client.cli.input.options import DryRun, Timeout, Wait
from stockyard_client.cli.output import plans, progress
from stockyard_client.cli.output.node_sheets import APPLIED
from stockyard_client.cli.output.output import Form, Output, show_many
from stockyard_client.client import Client

CLUSTER = "stockyard.dev/cluster"
"""The label by which documents of pools and claims of other projects name their cluster."""
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
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="The pools of a vcluster.yaml are all: delete those that it made before and names no more."
        ),
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Make what manifests ask for, and change what differs. All are checked before one is stored. With --wait the
    operations on clusters are waited for, with the pools and members that they order."""
    context = contexts.of(run)
    documents = [of_cluster(document, cluster) for document in read_manifests(context, file, recursive=recursive)]
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.manifests.plan(documents, prune=prune))
            return
        if prune:
            _confirm(context, client, documents, yes=yes)
        results = client.manifests.apply(documents, prune=prune)
        plans.warn(context, results.every_warning)
        for result in results if wait else ():
            if result.operation_id and result.kind not in _OF_NODES:
                progress.wait_for_cluster(context, client, client.clusters.get(result.id), timeout)
    show_many(context, output, APPLIED, results)


def _confirm(context: contexts.Context, client: Client, documents: list[dict[str, Any]], *, yes: bool) -> None:
    """Say which pools would be deleted, and ask; nothing is asked where none would be."""
    if yes or not context.asks:
        return
    plan = client.manifests.plan(documents, prune=True)
    names = [str(entry.get("name")) for entry in plan.deletes if isinstance(entry, dict)]
    if names:
        lines = [f"Pool {name} is deleted, and its nodes are drained and given back." for name in names]
        confirm(context, lines, yes=yes, question="Delete them?" if len(names) > 1 else "Delete it?")


def of_cluster(document: dict[str, Any], cluster: str | None) -> dict[str, Any]:
    """The document; one of another project that names no cluster names this one."""
    metadata = document.get("metadata") or {}
    if cluster is None or not _is_foreign(document) or not isinstance(metadata, dict):
        return document
    labels = metadata.get("labels") or {}
    if not isinstance(labels, dict):
        return document
    return {**document, "metadata": {**metadata, "labels": {CLUSTER: cluster, **labels}}}


def _is_foreign(document: dict[str, Any]) -> bool:
    """Whether its form has no field for the cluster: a vcluster.yaml, or what a Karpenter has in one cluster."""
    if "kind" not in document:
        return "privateNodes" in document
    return str(document.get("apiVersion", "")).startswith("karpenter.sh/") or document["kind"] == "NodePool"
