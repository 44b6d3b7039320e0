"""A cluster drawn as a tree: conditions, the operation's phases, pools with their claims and nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text
from rich.tree import Tree

from stockyard_client.cli.context import Context
from stockyard_client.cli.node_sheets import dollars, state
from stockyard_client.cli.output import region_of, style_of
from stockyard_client.cli.progress import phase_text
from stockyard_client.models import Cluster, Condition, Operation
from stockyard_client.node_models import NodeClaim

_OF_NODES = ("pool", "node-claim", "more")


def draw(context: Context, cluster: Cluster, operation: Operation | None, below: Mapping[str, Any]) -> Tree:
    """The tree of ``cluster``; ``operation`` is its last one, when it is known, ``below`` the API's tree."""
    title = Text.assemble(
        ("cluster ", "dim"), (cluster.name, "bold"), "  ", (cluster.status, style_of(cluster.status) or "")
    )
    root = Tree(title, guide_style="dim")
    for label, value in _facts(cluster):
        root.add(Text.assemble((f"{label} ", "dim"), str(value)))
    _conditions(root, cluster.conditions)
    if operation is not None:
        _operation(context, root, operation)
    _profiles(root, below)
    _nodes(root, below)
    return root


def _facts(cluster: Cluster) -> list[tuple[str, Any]]:
    extra = cluster.model_extra or {}
    facts = [
        ("id", cluster.id),
        ("description", cluster.description),
        ("provider", f"{cluster.provider}, account {cluster.cloud_account_id}"),
        ("region", region_of(cluster)),
        ("client", cluster.client_id),
        ("endpoint", extra.get("endpoint")),
        ("bastion", extra.get("bastion")),
        ("created", cluster.created_at),
        ("last snapshot", extra.get("last_snapshot")),
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


def _profiles(root: Tree, below: Mapping[str, Any]) -> None:
    """The cluster's profiles with their packs."""
    drawn = [child for child in below.get("children") or () if child.get("kind") == "profile"]
    if drawn:
        branch = root.add("profiles")
        for child in drawn:
            _grow(branch, child)


def _nodes(root: Tree, below: Mapping[str, Any]) -> None:
    """The cluster's pools and its claims of no pool, with what all its nodes cost."""
    drawn = [child for child in below.get("children") or () if child.get("kind") in _OF_NODES]
    if not drawn:
        return
    branch = root.add(Text("nodes").append(_price(below), style="dim"))
    for child in drawn:
        _grow(branch, child)


def _grow(branch: Tree, document: Mapping[str, Any]) -> None:
    status = str(document.get("status") or "")
    text = Text.assemble((f"{document.get('kind')} ", "dim"), (str(document.get("name")), "bold"), "  ")
    text.append(status, style=style_of(status) or "")
    node_type, message = (f"  {document[key]}" if document.get(key) else "" for key in ("type", "message"))
    text.append(f"{node_type}{_price(document)}{message}", style="dim")
    child_branch = branch.add(text)
    for child in document.get("children") or ():
        _grow(child_branch, child)


def _price(document: Mapping[str, Any]) -> str:
    price = dollars(document.get("usd_hour"))
    return "" if price is None else f"  {price} USD/hour"
