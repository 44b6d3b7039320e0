"""A cluster as a person reads it, with everything below it as a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from stockyard_client.cli.context import Context
from stockyard_client.cli.output import sections
from stockyard_client.cli.output.ages import age
from stockyard_client.cli.output.node_tables import CLAIMS_OF_CLUSTER, trouble_first
from stockyard_client.cli.output.output import region_of, version_of, why_of
from stockyard_client.cli.output.pool_tables import POOLS
from stockyard_client.cli.tenant.costs import total
from stockyard_client.client import Client
from stockyard_client.errors import ApiError
from stockyard_client.models import Cluster, Operation

MOST_CLAIMS = 15


def describe(context: Context, client: Client, cluster: Cluster, operation: Operation | None) -> None:
    """Writes the cluster: where it is and what it costs, what does not hold, its pools and nodes, what waits and why,
    its last operation and events, and what to type next."""
    sections.title(context, f"cluster {cluster.name}", cluster.status, cluster.description)
    if why := why_of(cluster):
        sections.paragraph(context, why, "yellow")
    sections.facts(context, facts(context, client, cluster))
    sections.conditions(context, cluster.conditions)
    sections.table(context, "Pools", POOLS, list(client.pools.list(cluster.id)))
    claims = list(islice(client.node_claims.list(cluster=cluster.id), 500))
    ordered = trouble_first(claims)
    remaining = len(ordered) - MOST_CLAIMS
    more = f"and {remaining} more: stockyard claim list --cluster {cluster.name}" if remaining > 0 else ""
    available = sum(claim.phase == "Available" and not claim.deleting for claim in claims)
    leaving = sum(claim.deleting for claim in claims)
    name = f"Node claims  {available} of {len(claims)} are available" + (f", {leaving} leave" if leaving else "")
    sections.table(context, name, CLAIMS_OF_CLUSTER, ordered[:MOST_CLAIMS], more)
    sections.operation(context, operation)
    sections.events(context, client.events.newest(cluster.id, sections.EVENTS_SHOWN))
    sections.following(context, *following(cluster, operation))


def facts(context: Context, client: Client, cluster: Cluster) -> dict[str, Any]:
    """Place, age and price of the cluster."""
    extra = cluster.document()
    return {
        "Kubernetes": " ".join(filter(None, (version_of(cluster), _kind_of(cluster)))),
        "Where": f"{cluster.provider}, account {cluster.cloud_account_id}, {region_of(cluster) or 'its own region'}",
        "Control plane": _control_plane(cluster),
        "API": endpoint_of(cluster),
        "Bastion": extra.get("bastion"),
        "Price": _price(client, cluster),
        "Age": f"{age(cluster.created_at, context.now())} ({cluster.created_at})" if cluster.created_at else None,
        "Limits": ", ".join(f"{key}={value}" for key, value in sorted(cluster.limits.items())),
        "Tags": ", ".join(f"{key}={value}" for key, value in sorted(cluster.tags.items())),
        "Last snapshot": extra.get("last_snapshot"),
        "Certificates": extra.get("certificates_expire_at") and f"end at {extra['certificates_expire_at']}",
        "Expires": extra.get("expires_at") and f"its deletion begins at {extra['expires_at']}",
        "Kept until": extra.get("kept_until"),
        "Queued": ", ".join(cluster.queue),
        "Client": cluster.client_id,
        "Id": cluster.id,
    }


def _kind_of(cluster: Cluster) -> str:
    driver = cluster.document().get("driver")
    return f"({cluster.cluster_type}{f', driver {driver}' if driver else ''})"


def _control_plane(cluster: Cluster) -> str | None:
    """Number of members, their group and their machine; None where the cloud runs the control plane."""
    settings = cluster.settings
    size, kind = settings.get("control_plane_size"), settings.get("control_plane_instance_type")
    if not size:
        return None
    groups = settings.get("autoscaler_node_groups") or ()
    control: dict[str, Any] = next((group for group in groups if group.get("role") == "control"), {})
    name = control.get("name") or control.get("id")
    # on Cudo the size is that of the one machine: sm, md or lg
    members = f"{size} members" if isinstance(size, int) and size > 1 else "1 member"
    machine = kind if isinstance(size, int) else settings.get("instance_type") or f"size {size}"
    return ", ".join(str(part) for part in (members, machine, name and f"group {name}") if part)


def endpoint_of(cluster: Cluster) -> str | None:
    """URL of the cluster's Kubernetes API; None before it is known."""
    if endpoint := cluster.document().get("endpoint"):
        return str(endpoint)
    condition = next((c for c in cluster.conditions if c.type == "EndpointReady" and c.status == "True"), None)
    return condition.message if condition is not None and condition.message.startswith("https://") else None


def _price(client: Client, cluster: Cluster) -> str | None:
    """Price of the cluster; None of an API that cannot say it."""
    try:
        costs = client.costs.get(cluster.id)
    except ApiError as error:
        if error.status != 404:
            raise
        return None
    return total(costs) if costs.lines else None


def following(cluster: Cluster, operation: Operation | None) -> list[str]:
    """The commands that fit what the cluster is just now."""
    name = cluster.name
    if operation is not None and operation.status == "running":
        return [f"stockyard operation wait {operation.id}"]
    if cluster.status == "failed" or (operation is not None and operation.status in {"failed", "cancelled"}):
        commands = [f"stockyard cluster resume {name} --wait"]
        if operation is not None and operation.kind == "create_cluster":
            commands.append(f"stockyard cluster resume {name} --with FILE --wait   # with other settings")
        return [*commands, f"stockyard cluster delete {name}"]
    if cluster.status == "ready":
        return [f"stockyard cluster kubeconfig {name}", f"stockyard cluster tree {name}"]
    return []


def folded(below: Mapping[str, Any], *, everything: bool) -> dict[str, Any]:
    """The API's tree of a cluster for people: the phases of operations that have succeeded, and what stands in the
    cloud by kind, are folded, unless ``everything`` is wanted."""
    children: list[dict[str, Any]] = []
    resources: list[Mapping[str, Any]] = []
    for child in below.get("children") or ():
        kind = child.get("kind")
        if kind == "operation":
            phases = [] if child.get("status") == "succeeded" and not everything else child.get("children")
            children.append({**child, "children": phases})
        elif kind in _DRAWN:
            children.append(dict(child))
        else:
            resources.append(child)
    if resources:
        children.insert(min(1, len(children)), _resources(resources, everything=everything))
    return {**below, "children": children}


_DRAWN = frozenset({"pool", "node-claim", "more", "profile", "billed"})


def _resources(resources: Sequence[Mapping[str, Any]], *, everything: bool) -> dict[str, Any]:
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for resource in resources:
        by_kind.setdefault(str(resource.get("kind")), []).append(resource)
    rows: list[dict[str, Any]] = []
    for kind, listed in by_kind.items():
        if everything:
            rows += [{**resource, "message": resource.get("id") or ""} for resource in listed]
        else:
            identifiers = ", ".join(str(resource.get("id") or resource.get("name")) for resource in listed)
            rows.append({"kind": kind, "name": f"x{len(listed)}" if len(listed) > 1 else "", "message": identifiers})
    return {"kind": "resources", "name": str(len(resources)), "children": rows}
