"""``stockyard apply``: manifests from files."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.input.inputs import read_manifests
from stockyard_client.cli.input.options import DryRun, Timeout, Wait
from stockyard_client.cli.output import plans, progress
from stockyard_client.cli.output.node_sheets import APPLIED
from stockyard_client.cli.output.output import Form, Output, show_many

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
            plans.show(context, output, client.manifests.plan(documents))
            return
        results = client.manifests.apply(documents)
        plans.warn(context, results.every_warning)
        for result in results if wait else ():
            if result.operation_id and result.kind not in _OF_NODES:
                progress.wait_for_cluster(context, client, client.clusters.get(result.id), timeout)
    show_many(context, output, APPLIED, results)


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
