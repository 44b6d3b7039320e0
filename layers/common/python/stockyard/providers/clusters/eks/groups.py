"""The node groups of a cluster on EKS: how they are pools, and which provider serves them."""

from __future__ import annotations

from typing import Any

from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.nodes.node_types import CAPACITY_BLOCK, ON_DEMAND
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.pools.node_groups import MACHINE, RESOURCES
from stockyard.domain.pools.records import DYNAMIC, GROUP, NODES, NewPool, Pool
from stockyard.domain.records import Cluster
from stockyard.domain.values.quantities import milli
from stockyard.domain.values.requirements import CAPACITY_TYPE, IN, INSTANCE_TYPE, ZONE

POOL_LABEL, GPU_LABEL = "modelplane.ai/pool", "modelplane.ai/gpu"
"""Labels of nodes: the group, and the kind of its GPUs."""
GPU = "nvidia.com/gpu"
GPU_TAINT = {"key": GPU, "value": "true", "effect": "NoSchedule"}
CONSOLIDATE_AFTER = "10m"
_UNCHANGING = ("instance_type", "disk_gib", "zones", "fabric", "capacity_reservation_id", "role")


def node_labels(group: Group) -> dict[str, str]:
    """The labels of the group's nodes."""
    gpu = {GPU_LABEL: group["accelerator_type"]} if group["role"] == "gpu" else {}
    return {**group["labels"], POOL_LABEL: group["name"], **gpu}


def node_taints(group: Group) -> list[dict[str, str]]:
    """The taints of the group's nodes: those with GPUs take only pods that say so."""
    own = [{name: taint[name] for name in ("key", "value", "effect") if taint.get(name)} for taint in group["taints"]]
    return [*own, dict(GPU_TAINT)] if group["role"] == "gpu" else own


def capacity_type(group: Group) -> str:
    """Capacity type of the group's machines."""
    return CAPACITY_BLOCK if group.get("capacity_reservation_id") else ON_DEMAND


def pool_of_group(group: Group, provider: str = "") -> NewPool:
    """See ``group_mapping.GroupMapping``. A node is given back only when it is empty: it may hold what cannot move."""
    requirements = [
        {"key": INSTANCE_TYPE, "operator": IN, "values": [group["instance_type"]]},
        {"key": CAPACITY_TYPE, "operator": IN, "values": [capacity_type(group)]},
    ]
    if group["zones"]:
        requirements.append({"key": ZONE, "operator": IN, "values": list(group["zones"])})
    return NewPool(
        name=group["name"],
        kind=DYNAMIC,
        provider_ref=provider,
        labels=node_labels(group),
        taints=tuple(node_taints(group)),
        floor=group["min_size"],
        limits={NODES: str(group["max_size"])},
        requirements=tuple(requirements),
        disruption={"consolidateAfter": CONSOLIDATE_AFTER, "consolidationPolicy": "WhenEmpty"},
        form=GROUP,
        document={
            "group": dict(group),
            MACHINE: {
                name: group[name] for name in ("disk_gib", "fabric", "capacity_reservation_id") if group.get(name)
            },
            **({RESOURCES: {GPU: "1"}} if group["role"] == "gpu" else {}),
        },
    )


def group_of_pool(pool: NewPool | Pool) -> dict[str, Any]:
    """See ``group_mapping.GroupMapping``. A pool that came as no group is said by a group that differs from it."""
    from stockyard.providers.clusters.eks.settings import builtin_group  # loads pydantic

    group: dict[str, Any] = pool.document.get("group") or {}
    if "instance_type" not in group:  # of no group, or of one in another cloud
        group = {**builtin_group(), "name": pool.name}
    return {**group, "min_size": pool.floor, "max_size": milli(pool.limits.get(NODES, "0")) // 1000}


def shape(group: Group) -> dict[str, Any]:
    """Parts of a group that EKS cannot change. Zones are a set."""
    return {name: _as_set(group.get(name)) or None for name in _UNCHANGING}


def _as_set(value: Any) -> Any:
    return sorted(value) if isinstance(value, list | tuple) else value


def remakes(before: NewPool | Pool, after: NewPool | Pool) -> bool:
    """See ``group_mapping.GroupMapping``. A managed group of another shape is another group; the former one goes."""
    former, later = before.document.get("group"), after.document.get("group")
    return former is not None and later is not None and shape(former) != shape(later)


def provider(cluster: Cluster) -> ProviderDocument:
    """The implicit provider of the cluster's account and region."""
    region_name = str(cluster.settings["region_name"])
    block = {"cloudAccount": cluster.cloud_account_id, "region": region_name}
    return ProviderDocument(f"eks-{cluster.cloud_account_id}-{region_name}", "eks", block)
