"""Changes of a ready cluster: sent again when the record has moved on, and shown as the operation that carries them
out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stockyard_client.cli.context import Context
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.operations import operations
from stockyard_client.cli.output import plans
from stockyard_client.cli.output.output import CLUSTERS, Form, show_one
from stockyard_client.client import Client
from stockyard_client.errors import ApiError
from stockyard_client.models import Cluster

ATTEMPTS = 5
"""How often a change is tried while other things change the cluster's record."""

Patch = Callable[[Cluster], dict[str, Any]]
"""The merge patch of a cluster as it is now."""


def change(
    context: Context,
    client: Client,
    cluster: str,
    patch: Patch,
    *,
    dry_run: bool,
    wait: bool,
    timeout: float | None,
    output: Form,
) -> None:
    """Change a cluster, or show the plan of that; what an operation does is waited for and shown."""
    current = client.clusters.get(cluster)
    if dry_run:
        plans.show(context, output, client.clusters.plan_update(current, patch(current)))
        return
    changed = _sent(client, current, patch)
    finish(context, client, current, changed, wait=wait, timeout=timeout, output=output)


def finish(
    context: Context,
    client: Client,
    current: Cluster,
    changed: Cluster,
    *,
    wait: bool,
    timeout: float | None,
    output: Form,
) -> None:
    """Show what became of a change of ``current``: the record, or the operation that carries it out."""
    if changed.version == current.version:
        context.say(f"Cluster {changed.name} is so already: nothing changes.")
    plans.warn(context, changed.warnings)
    identifier = changed.started_operation or changed.operation_id
    if identifier is None or identifier == current.operation_id:
        show_one(context, output, CLUSTERS, changed)
        return
    operation = client.operations.get(identifier)
    if operation.status == "queued":
        context.say(f"Operation {operation.id} waits for its turn on cluster {changed.name}.")
    else:
        context.say(f"Cluster {changed.name} is being changed by operation {operation.id}.")
    operations.finish(context, client, operation, wait=wait, timeout=timeout, output=output)


def _sent(client: Client, current: Cluster, patch: Patch) -> Cluster:
    for _ in range(ATTEMPTS - 1):
        try:
            return client.clusters.update(current, patch(current))
        except ApiError as error:
            if error.status != 412:
                raise
        current = client.clusters.get(current.id)
    return client.clusters.update(current, patch(current))


def queued(patch: Patch, *, queue: bool) -> Patch:
    """The patch, which waits for another operation where that is asked for."""
    return (lambda cluster: {**patch(cluster), "queue": True}) if queue else patch


def added(group: dict[str, Any]) -> Patch:
    """The patch that gives a cluster another node group."""

    def patch(cluster: Cluster) -> dict[str, Any]:
        setting = "node_groups" if "node_groups" in cluster.settings else "autoscaler_node_groups"
        groups = list(cluster.settings.get(setting) or ())
        if any(entry.get("name") == group["name"] for entry in groups):
            raise BadInput(f"the settings of cluster {cluster.name} have a node group {group['name']}")
        return {"settings": {setting: [*groups, group]}}

    return patch


def resized(group: str, floor: int | None, most: int | None) -> Patch:
    """The patch that lets a node group have so many nodes."""

    def patch(cluster: Cluster) -> dict[str, Any]:
        groups = list(cluster.settings.get("node_groups") or ())
        index = next((number for number, entry in enumerate(groups) if entry.get("name") == group), None)
        if index is None:
            raise BadInput(f"the settings of cluster {cluster.name} have no node group {group}")
        entry = dict(groups[index])
        entry["min_size"] = entry.get("min_size") if floor is None else floor
        entry["max_size"] = entry.get("max_size") if most is None else most
        if entry["min_size"] > entry["max_size"]:
            least, largest = entry["min_size"], entry["max_size"]
            raise BadInput(f"--floor {least} would be more than --most {largest} of the node group {group}")
        if "count" in entry:
            entry["count"] = min(max(entry["count"], entry["min_size"]), entry["max_size"])
        return {"settings": {"node_groups": [*groups[:index], entry, *groups[index + 1 :]]}}

    return patch
