"""``stockyard apply``: manifests from files."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli import plans
from stockyard_client.cli.inputs import read_documents
from stockyard_client.cli.node_sheets import APPLIED
from stockyard_client.cli.options import DryRun
from stockyard_client.cli.output import Form, Output, show_many

CLUSTER = "stockyard.dev/cluster"
"""The label by which documents of pools name their cluster."""


def apply(
    run: typer.Context,
    file: Annotated[
        list[str], typer.Option("--file", "-f", help="JSON or YAML manifests; - reads standard input; may be repeated.")
    ],
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="Of a vcluster.yaml, a NodePool or a NodeClaim of Karpenter's that names none."),
    ] = None,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Make what manifests ask for, and change what differs. All are checked before one is stored."""
    context = contexts.of(run)
    documents = [of_cluster(document, cluster) for source in file for document in read_documents(source)]
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.manifests.plan(documents))
            return
        results = client.manifests.apply(documents)
    show_many(context, output, APPLIED, results)
    for warning in (*results.warnings, *(warning for result in results for warning in result.warnings)):
        context.say(f"Warning: {warning.get('pointer') or '/'}: {warning.get('detail', '')}", "yellow")


def of_cluster(document: dict[str, Any], cluster: str | None) -> dict[str, Any]:
    """The document; a vcluster.yaml, or one of Karpenter's, that names no cluster names this one."""
    is_vcluster = "kind" not in document and "privateNodes" in document
    is_karpenter = document.get("kind") == "NodePool" or str(document.get("apiVersion")).startswith("karpenter.sh/")
    metadata = document.get("metadata") or {}
    if cluster is None or not (is_vcluster or is_karpenter) or not isinstance(metadata, dict):
        return document
    labels = metadata.get("labels") or {}
    if not isinstance(labels, dict):
        return document
    return {**document, "metadata": {**metadata, "labels": {CLUSTER: cluster, **labels}}}
