"""``stockyard delete -f``: what manifests and bodies of requests name, in reverse order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.documents.bodies import MANIFEST, noun_of
from stockyard_client.cli.documents.selection import CLUSTER
from stockyard_client.cli.input.confirmations import Yes, confirm
from stockyard_client.cli.input.options import Timeout, Wait
from stockyard_client.cli.manifests.apply import Files, OfCluster, Recursive
from stockyard_client.cli.manifests.removals import ORDER, Doomed, failed, ordered, plan_of, remove, verb
from stockyard_client.cli.output import plans
from stockyard_client.cli.output.output import Form, Output
from stockyard_client.cli.visible import echo
from stockyard_client.errors import ApiError

if TYPE_CHECKING:
    from stockyard_client.cli.documents.documents import Document
    from stockyard_client.client import Client

NAMESPACED, DEFAULT_NAMESPACE = "EKSCluster", "default"
"""The kind of clusters that have a namespace, and that of a manifest that names none."""
_NOUNS = {
    "NodeClaim": "claim",
    "Pool": "pool",
    "NodePool": "pool",
    "Cluster": "cluster",
    "EKSCluster": "cluster",
    "SpectroAwsCluster": "cluster",
    "ClusterProfile": "profile",
    "NodeProvider": "provider",
    "OSImage": "os-image",
}


def delete(
    run: typer.Context,
    file: Files,
    recursive: Recursive = False,
    cluster: OfCluster = None,
    ignore_missing: Annotated[
        bool, typer.Option("--ignore-not-found", help="What is not there is no failure.")
    ] = False,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be deleted; delete nothing.")] = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Delete what files name, in reverse order. One that fails does not stop the others."""
    from stockyard_client.cli.documents.documents import documents_of
    from stockyard_client.cli.documents.sources import sources_of

    context = contexts.of(run)
    documents = documents_of(sources_of(file, recursive=recursive))
    things = ordered([thing for document in documents for thing in doomed(document, cluster)])
    if any(thing.namespace for thing in things):
        with context.client() as client:
            things = identified(client, things)
    if dry_run:
        _plan(context, things, ignore_missing=ignore_missing)
        return
    question = "Delete this one?" if len(things) == 1 else f"Delete these {len(things)}?"
    confirm(context, (f"- {thing.title}" for thing in things), yes=yes, question=question)

    def removed(thing: Doomed) -> None:
        echo(thing.name if output is Form.NAME else f"{thing.title} {verb(thing, wait=wait)}")

    with context.client() as client:
        codes = remove(
            context,
            client,
            things,
            ignore_missing=ignore_missing,
            wait=wait,
            timeout=timeout,
            on_removed=removed,
        )
    if codes:
        raise typer.Exit(codes[0])


def _plan(context: contexts.Context, things: Sequence[Doomed], *, ignore_missing: bool) -> None:
    """Show what would be deleted, by the API's checks. Each thing is looked at while all others are there."""
    codes: list[int] = []
    with context.client() as client:
        for thing in things:
            try:
                plan = plan_of(client, thing)
            except ApiError as error:
                if error.status == 409:  # what uses it may go before it
                    echo(thing.title)
                    plans.warn(context, [f"{thing.title}: {error.detail}"])
                elif error.status == 404 and ignore_missing:
                    context.say(f"There is no {thing.title}.")
                else:
                    codes.append(failed(context, thing, error, wait=True))
                continue
            echo(thing.title)
            plans.warn(context, plan.warnings)
    context.say("This was a dry run; nothing was changed.", "dim")
    if codes:
        raise typer.Exit(codes[0])


def doomed(document: Document, cluster: str | None) -> list[Doomed]:
    """Things that a document names. Raises :class:`BadInput` for one that names nothing that can be deleted so."""
    value, noun = document.value, noun_of(document.value)
    if "privateNodes" in value and not document.kind:
        return [Doomed("pool", name, _cluster(document, cluster)) for name in _pools_of(value)]
    if noun == MANIFEST:
        noun = _NOUNS.get(document.kind, "")
    if noun not in ORDER or not document.name:
        reason = "it has no name" if noun in ORDER else "this kind is not deleted by a document"
        raise BadInput(f"{document.location()}: {reason}")
    if document.kind == NAMESPACED:
        metadata = document.value.get("metadata") or {}
        namespace = metadata.get("namespace")
        return [Doomed(noun, document.name, "", namespace or DEFAULT_NAMESPACE, bool(namespace))]
    return [Doomed(noun, document.name, _cluster(document, cluster) if noun == "pool" else "")]


def identified(client: Client, things: Sequence[Doomed]) -> list[Doomed]:
    """The things, with what the tenant calls clusters whose manifests have a namespace. A cluster of the same name in
    another namespace is never meant."""
    namespaces = {each.name: str(each.settings.get("namespace") or "") for each in client.clusters.list(page_size=200)}

    def name_of(thing: Doomed) -> str:
        second = f"{thing.namespace}-{thing.name}"
        if namespaces.get(second) == thing.namespace:
            manifest = client.clusters.manifest(second)
            if manifest.get("metadata", {}).get("name") == thing.name:
                return second
        own = {thing.namespace} if thing.has_namespace else {thing.namespace, ""}
        return thing.name if namespaces.get(thing.name) in own else second

    return [replace(thing, name=name_of(thing)) if thing.namespace else thing for thing in things]


def _pools_of(value: dict[str, Any]) -> list[str]:
    """The pools of a vcluster.yaml: static and dynamic ones, of each entry where there are several."""
    private = value["privateNodes"] if isinstance(value["privateNodes"], dict) else {}
    entries = [entry for form in ("autoNodes", "nodePools") for entry in _listed(private.get(form))]
    pools = [pool for entry in entries for form in ("static", "dynamic") for pool in _listed(entry.get(form))]
    return [pool["name"] for pool in pools if isinstance(pool.get("name"), str)]


def _listed(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, or the object itself as the only one."""
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]


def _cluster(document: Document, cluster: str | None) -> str:
    """The cluster that a pool names: in its specification, by its label, or by the option."""
    spec, metadata = document.value.get("spec"), document.value.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    own = spec.get("cluster") if isinstance(spec, dict) else None
    labelled = labels.get(CLUSTER) if isinstance(labels, dict) else None
    name = own or labelled or cluster
    if not isinstance(name, str) or not name:
        raise BadInput(f"{document.location()}: it names no cluster: give --cluster")
    return name
