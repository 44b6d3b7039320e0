"""``stockyard plan``: which nodes pods would need, at what price, and why some would have no place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from stockyard_client.cli import context as contexts
from stockyard_client.cli.input.completion import cluster_names
from stockyard_client.cli.input.inputs import read_manifests
from stockyard_client.cli.output.output import Form, Output, show_many, write_document
from stockyard_client.cli.output.plans import money
from stockyard_client.cli.output.pool_tables import EXISTING_NODES, PLANNED_NODES, PlannedNodes, equal_nodes
from stockyard_client.pool_models import LeftOut, Placements

_PARTS_OF_PODS = frozenset(
    {
        "affinity",
        "containers",
        "hostNetwork",
        "initContainers",
        "nodeName",
        "nodeSelector",
        "overhead",
        "priority",
        "resourceClaims",
        "resources",
        "schedulingGates",
        "tolerations",
        "topologySpreadConstraints",
    }
)
"""What of a pod decides where it may go. Nothing else is sent: environments and volumes may hold secrets."""
_PARTS_OF_CONTAINERS = frozenset({"name", "ports", "resources", "restartPolicy"})
_PARTS_OF_METADATA = frozenset({"name", "generateName", "namespace", "labels", "ownerReferences", "deletionTimestamp"})
_PARTS_OF_CONTROLLERS = frozenset({"replicas", "parallelism", "completions", "suspend", "template", "jobTemplate"})
_PARTS_OF_CONDITIONS = frozenset({"type", "status"})
_MOST_REASONS = 5


def plan(
    run: typer.Context,
    file: Annotated[
        list[str],
        typer.Option(
            "--file", "-f", help="Kubernetes manifests, JSON or YAML; - reads standard input; may be repeated."
        ),
    ],
    cluster: Annotated[
        str | None,
        typer.Option(help="Plan on its pools; default: on all providers.", autocompletion=cluster_names),
    ] = None,
    preferences: Annotated[
        bool, typer.Option("--preferences/--no-preferences", help="Keep preferred rules of pods where they can be.")
    ] = True,
    output: Output = Form.TABLE,
) -> None:
    """Say which nodes pods would need, and what they cost. Nothing is made. -o wide shows each node with its pods."""
    context = contexts.of(run)
    manifests = [reduced(document) for document in read_manifests(context, file, at="/manifests", own=False)]
    with context.client() as client:
        placements = client.placements.plan(manifests, cluster=cluster, preferences=preferences)
    if output in {Form.JSON, Form.YAML}:
        write_document(output, placements.document())
        return
    rows = equal_nodes(placements.nodes)
    if output is Form.WIDE:
        rows = [PlannedNodes(node=node, pods=len(node.pods)) for node in placements.nodes]
    if not placements.complete:
        _warn(context, placements.warnings[:1])
    if output is not Form.NAME:
        context.out.print(Text(summary(placements), style="bold"), soft_wrap=True)
    if rows:
        show_many(context, output, PLANNED_NODES, rows)
    if output is Form.WIDE and placements.existing:
        show_many(context, output, EXISTING_NODES, placements.existing)
    if output is Form.NAME:
        return
    if placements.opt_in:
        context.out.print(Text(placements.opt_in), soft_wrap=True)
    for item in placements.left_out:
        _show_left_out(context, item)
    _warn(context, placements.warnings if placements.complete else placements.warnings[1:])


def _warn(context: contexts.Context, warnings: Sequence[dict[str, Any]]) -> None:
    for warning in warnings:
        context.say(f"Warning: {warning.get('detail', '')}", "yellow")


def summary(placements: Placements) -> str:
    """One line: the nodes, their price, and how far it is from what is possible."""
    left_out = sum(item.count for item in placements.left_out)
    existing = sum(len(node.pods) for node in placements.existing)
    on_new_nodes, count = placements.pods - left_out - existing, len(placements.nodes)
    parts = [f"{existing} {_pods(existing)} on nodes that are there"] if existing else []
    if count:
        clause = f"{count} new node{'s' if count > 1 else ''} for {on_new_nodes} {_pods(on_new_nodes)}"
        price = f"{money(placements.usd_hour, 'USD', 4)} /hour"
        gap = ""
        if placements.bound is not None and placements.gap is not None:
            gap = f", at least {placements.bound:.4f} are needed (gap {placements.gap:.2%})"
        parts.insert(0, f"{clause}: {price}{gap}")
    else:
        parts.insert(0, "No new node is needed" if existing and not left_out else "No new node")
    text = "; ".join(parts)
    return (
        f"{text}. {left_out} {_pods(left_out)} {'has' if left_out == 1 else 'have'} no place."
        if left_out
        else f"{text}."
    )


def _pods(count: int) -> str:
    return "pod" if count == 1 else "pods"


def _show_left_out(context: contexts.Context, item: LeftOut) -> None:
    example = item.pods[0] if item.pods else "a pod"
    more = f" and {item.count - 1} like it" if item.count > 1 else ""
    context.out.print(Text(f"! {example}{more}", style="red"), soft_wrap=True)
    for reason in item.reasons[:_MOST_REASONS]:
        pool = f"{reason.pool}: " if reason.pool else ""
        context.out.print(Text(f"    {pool}{reason.message} ({reason.rule})"), soft_wrap=True)
    if len(item.reasons) > _MOST_REASONS:
        context.out.print(Text(f"    and {len(item.reasons) - _MOST_REASONS} more pools"), soft_wrap=True)


def reduced(document: Any, annotations: frozenset[str] = frozenset()) -> Any:
    """A manifest reduced to the fields that decide the placement of its pods and to the named annotations; nothing
    else."""
    if not isinstance(document, dict):
        return document
    parts = {"apiVersion": document.get("apiVersion"), "kind": document.get("kind")}
    parts["metadata"] = _reduced_metadata(document.get("metadata"), annotations)
    if isinstance(document.get("items"), list):
        parts["items"] = [reduced(item, annotations) for item in document["items"]]
    if isinstance(document.get("status"), dict):
        parts["status"] = _reduced_status(document["status"])
    parts["spec"] = _reduced_spec(document.get("spec"), annotations)
    return {name: value for name, value in parts.items() if value is not None}


def _reduced_status(status: dict[str, Any]) -> dict[str, Any]:
    """Whether a pod or a Job has ended."""
    parts = dict(_only(status, frozenset({"phase"})))
    if isinstance(status.get("conditions"), list):
        parts["conditions"] = [_only(condition, _PARTS_OF_CONDITIONS) for condition in status["conditions"]]
    return parts


def _reduced_metadata(metadata: Any, annotations: frozenset[str]) -> Any:
    parts = _only(metadata, _PARTS_OF_METADATA)
    written = metadata.get("annotations") if isinstance(metadata, dict) else None
    kept_annotations = _only(written, annotations) if isinstance(written, dict) else {}
    return {**parts, "annotations": kept_annotations} if kept_annotations else parts


def _reduced_spec(spec: Any, annotations: frozenset[str]) -> Any:
    """The specification of a pod, or of what makes pods."""
    if not isinstance(spec, dict):
        return spec
    kept_parts = _only(spec, _PARTS_OF_PODS | _PARTS_OF_CONTROLLERS)
    for name in ("containers", "initContainers"):
        if isinstance(kept_parts.get(name), list):
            kept_parts[name] = [_only(container, _PARTS_OF_CONTAINERS) for container in kept_parts[name]]
    for name in ("template", "jobTemplate"):
        if isinstance(kept_parts.get(name), dict):
            kept_parts[name] = reduced(kept_parts[name], annotations)
    return kept_parts


def _only(part: Any, names: frozenset[str]) -> Any:
    return {name: value for name, value in part.items() if name in names} if isinstance(part, dict) else part
