"""Node groups of a cluster's settings, as pools: what the groups of all kinds of clusters have in common.

Each worker group becomes a dynamic pool with a floor. What else a group says, its kind of cluster knows: see
``GroupMapping``, and ``cloud_kinds`` for who has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stockyard.domain import cloud_kinds
from stockyard.domain.nodes.properties import ROOT_DISK
from stockyard.domain.pools.budgets import DEFAULT_NODES
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.pools.records import CONTROL_PLANE, DYNAMIC, EXPIRE_AFTER, GROUP, NODES, NewPool, Pool
from stockyard.domain.records import Cluster
from stockyard.domain.values.quantities import milli

WORKER, CONTROL = "worker", "control"
GROUPS, AUTOSCALER_GROUPS = "node_groups", "autoscaler_node_groups"
"""The settings that have groups, of one kind of cluster or another."""
GROUP_SETTINGS = frozenset({GROUPS, AUTOSCALER_GROUPS})
CONSOLIDATE_AFTER = "30s"
MACHINE = "machine"
"""In the document of a group's pool: what else makes its machines what they are, such as the size of their disk."""
CONTROL_GROUP = "group"
"""In the document of the pool of a control plane's members: the name of the group that the settings call it by."""
RESOURCES = "resources"
"""In the document of a group's pool: what each of its nodes has that only those get who ask for it, such as GPUs."""


def name_of(group: Group) -> str:
    """Name of a group, which is the name of its pool."""
    return str(group.get("name") or group.get("id") or "")


def control_group_name(settings: Mapping[str, Any]) -> str | None:
    """Name in the settings of the group that the control plane stands on; None where there is no such group."""
    groups: Iterable[Group] = settings.get(AUTOSCALER_GROUPS) or ()
    return next((name_of(group) for group in groups if group.get("role") == CONTROL), None)


def worker_groups(settings: Mapping[str, Any]) -> list[Group]:
    """The groups of a cluster's settings that become pools: all but the control plane's."""
    groups: Iterable[Group] = settings.get(AUTOSCALER_GROUPS) or ()
    # Where the control plane is a service of the cloud, every group is one of workers.
    return [*(group for group in groups if group.get("role") == WORKER), *(settings.get(GROUPS) or ())]


def follows(cluster: Cluster) -> bool:
    """Whether the pools of node groups follow the settings: then a group is changed there, and nowhere else. Other
    clusters' groups are the settings' when the cluster is made, and pools like any other from then on."""
    return cloud_kinds.followed_groups(cluster.driver) is not None


def followed_setting(cluster: Cluster) -> str:
    """The setting whose groups the pools of the cluster follow. ``ValueError`` where they follow none."""
    setting = cloud_kinds.followed_groups(cluster.driver)
    if setting is None:
        raise ValueError(f"pools of clusters of the driver {cluster.driver!r} follow no setting")
    return setting


def followed_entries(cluster: Cluster) -> list[Group]:
    """The groups of that setting, the control plane's among them, in order; none where pools follow no setting."""
    return list(cluster.settings.get(followed_setting(cluster)) or ()) if follows(cluster) else []


def new_pool(group: Group, provider: str, **fields: Any) -> NewPool:
    """The pool of a group by what all groups have; ``fields`` are what only this kind of group says.

    ``min_size`` is the floor, ``max_size`` the limit of nodes.
    """
    return NewPool(
        name=name_of(group),
        kind=DYNAMIC,
        provider_ref=provider,
        labels=dict(group["labels"]),
        floor=group["min_size"],
        limits={NODES: str(group["max_size"])},
        expire_after=EXPIRE_AFTER,
        disruption={
            "consolidateAfter": CONSOLIDATE_AFTER,
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "budgets": [{"nodes": DEFAULT_NODES}],
        },
        form=GROUP,
        **fields,
    )


def common_fields(pool: NewPool | Pool) -> dict[str, Any]:
    """Fields of the pool in an entry of any kind of cluster, without its name."""
    return {
        "role": WORKER,
        "min_size": pool.floor,
        "max_size": milli(pool.limits.get(NODES, pool.floor)) // 1000,
        "labels": dict(pool.labels),
    }


def group_name(pool: Pool) -> str | None:
    """The name of the node group that the pool is of, or that its members of a control plane are of; None for none."""
    if pool.form == GROUP:
        return pool.name
    name = pool.document.get(CONTROL_GROUP) if pool.form == CONTROL_PLANE else None
    return str(name) if name else None


def node_properties(pool: Pool) -> dict[str, str]:
    """The properties of the pool's nodes. Where the machines of a group have a disk of their own size, its document
    says so, and what the disk costs and holds goes by that."""
    disk = (pool.document.get(MACHINE) or {}).get("disk_gib")
    return {**({ROOT_DISK: str(disk)} if disk else {}), **pool.properties}


def floor_resources(pool: Pool) -> dict[str, str]:
    """Resources that claims of the pool ask for before any pod does, as quantities: a node with GPUs is given only to
    who asks for them, and so is one of a floor."""
    return {str(name): str(amount) for name, amount in (pool.document.get(RESOURCES) or {}).items()}
