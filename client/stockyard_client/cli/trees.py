"""A cluster drawn as a tree: conditions, the operation's phases, node groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text
from rich.tree import Tree

from stockyard_client.cli.context import Context
from stockyard_client.cli.node_sheets import state
from stockyard_client.cli.output import style_of
from stockyard_client.cli.progress import phase_text
from stockyard_client.models import Cluster, Condition, Operation
from stockyard_client.node_models import NodeClaim


def draw(context: Context, cluster: Cluster, operation: Operation | None) -> Tree:
    """The tree of ``cluster``; ``operation`` is its last one, when it is known."""
    title = Text.assemble(
        ("cluster ", "dim"), (cluster.name, "bold"), "  ", (cluster.status, style_of(cluster.status) or "")
    )
    root = Tree(title, guide_style="dim")
    for label, value in _facts(cluster):
        root.add(Text.assemble((f"{label} ", "dim"), str(value)))
    _conditions(root, cluster.conditions)
    if operation is not None:
        _operation(context, root, operation)
    _groups(root, cluster)
    return root


def _facts(cluster: Cluster) -> list[tuple[str, Any]]:
    extra = cluster.model_extra or {}
    facts = [
        ("id", cluster.id),
        ("description", cluster.description),
        ("provider", f"{cluster.provider}, account {cluster.cloud_account_id}"),
        ("region", cluster.settings.get("region_name")),
        ("client", cluster.client_id),
        ("endpoint", extra.get("endpoint")),
        ("created", cluster.created_at),
        ("kept until", extra.get("kept_until")),
    ]
    return [(label, value) for label, value in facts if value]


def draw_claim(context: Context, claim: NodeClaim, operation: Operation | None) -> Tree:
    """The tree of ``claim``; ``operation`` is its last one, when it is known."""
    title = Text.assemble(("claim ", "dim"), (claim.name, "bold"), "  ", (state(claim), style_of(claim.phase) or ""))
    root = Tree(title, guide_style="dim")
    extra = claim.model_extra or {}
    facts = {"id": claim.id, "cluster": claim.cluster, "type": claim.type, "machine": extra.get("machine_id")}
    ends = {"kept until": extra.get("kept_until"), "taken back at": extra.get("ends_at")}
    for label, value in {**facts, "node": claim.node_name, **ends}.items():
        if value:
            root.add(Text.assemble((f"{label} ", "dim"), str(value)))
    _conditions(root, claim.conditions)
    if operation is not None:
        _operation(context, root, operation)
    return root


def _conditions(root: Tree, conditions: Sequence[Condition]) -> None:
    if not conditions:
        return
    branch = root.add("conditions")
    for condition in conditions:
        text = Text.assemble(f"{condition.type} ", (condition.status, style_of(condition.status) or ""))
        text.append(f"  {condition.reason}" + (f": {condition.message}" if condition.message else ""), style="dim")
        branch.add(text)


def _operation(context: Context, root: Tree, operation: Operation) -> None:
    text = Text.assemble(
        "operation ", (operation.kind, "bold"), "  ", (operation.status, style_of(operation.status) or "")
    )
    branch = root.add(text.append(f"  {operation.progress}%  {operation.id}", style="dim"))
    for phase in operation.phases:
        branch.add(phase_text(context.out, phase))
    if operation.error is not None:
        error = branch.add(Text(f"{operation.error.error_type}: {operation.error.cause}", style="red"))
        if operation.error.hint:
            error.add(Text(f"hint: {operation.error.hint}"))
        if operation.error.console:
            error.add(Text(f"console of the machine, its last lines:\n{operation.error.console}", style="dim"))


def _groups(root: Tree, cluster: Cluster) -> None:
    groups = cluster.settings.get("autoscaler_node_groups") or []
    if not groups:
        return
    branch = root.add("node groups")
    for group in groups:
        types = ", ".join(group.get("instance_types") or []) or "-"
        text = Text.assemble((str(group.get("name") or group.get("id")), "bold"))
        text.append(f"  {group.get('role')}  {group.get('min_size')} to {group.get('max_size')} nodes  {types}")
        branch.add(text)
