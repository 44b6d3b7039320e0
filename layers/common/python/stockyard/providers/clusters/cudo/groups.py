"""The node groups of a cluster on Cudo: how they are pools, and which providers serve them.

A group names one size of one machine type in one data center, so its provider offers exactly that. Groups of equal
figures share a provider, whatever clusters of the account they are of.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.pools.node_groups import RESOURCES, common_fields, new_pool
from stockyard.domain.pools.records import NewPool, Pool
from stockyard.domain.records import Cluster
from stockyard.domain.values.requirements import IN, ZONE
from stockyard.providers.clouds.cudo.labels import GPU, GPUS_LABEL, MACHINE_TYPE, MEMORY_GIB, VCPUS_LABEL

_FIGURES: dict[str, Any] = {
    "machine_type": "",
    "data_center_id": "",
    "vcpus": 0,
    "memory_gib": 0,
    "boot_disk_size_gib": 0,
    "gpus": 0,
    "gpu_model": "",
}
"""What a group says of its machines, and what stands for it in a pool that does not say it."""
_GROUP = "group"
"""In the document of a pool: these figures of its group."""
_LABELS = {MACHINE_TYPE: "machine_type", VCPUS_LABEL: "vcpus", MEMORY_GIB: "memory_gib", GPUS_LABEL: "gpus"}
_DIGITS = 8
_LONGEST_ID = 38


def pool_of_group(group: Group, provider: str = "") -> NewPool:
    """See ``group_mapping.GroupMapping``. Requirements pin machine type, size and data center; the boot disk is the
    provider's."""
    figures = {name: group[name] for name in _FIGURES}
    values = {**{key: str(group[name]) for key, name in _LABELS.items()}, ZONE: group["data_center_id"]}
    resources = {RESOURCES: {GPU: str(group["gpus"])}} if group["gpus"] else {}
    return new_pool(
        group,
        provider,
        requirements=tuple({"key": key, "operator": IN, "values": [value]} for key, value in values.items()),
        document={_GROUP: figures, **resources},
    )


def group_of_pool(pool: NewPool | Pool) -> dict[str, Any]:
    """See ``group_mapping.GroupMapping``. A pool on Cudo that no longer has the figures of its group is none: its
    requirements differ from those that the group would have."""
    return {**common_fields(pool), "id": pool.name, **_FIGURES, **(pool.document.get(_GROUP) or {})}


def remakes(before: NewPool | Pool, after: NewPool | Pool) -> bool:  # noqa: ARG001 - machines are made one by one
    """See ``group_mapping.GroupMapping``."""
    return False


def provider(cluster: Cluster, group: Group) -> ProviderDocument:
    """The implicit provider of all groups of the account that have these figures: the one size, with its boot disk."""
    size = {"vcpus": group["vcpus"], "memoryGib": group["memory_gib"], "gpus": group["gpus"]}
    block = {
        "cloudAccount": cluster.cloud_account_id,
        "dataCenter": group["data_center_id"],
        "machineTypes": [group["machine_type"]],
        "bootDiskSizeGib": group["boot_disk_size_gib"],
        "sizes": [size],
    }
    digest = hashlib.sha256(json.dumps(block, sort_keys=True).encode()).hexdigest()[:_DIGITS]
    short_id = str(group["data_center_id"])[:_LONGEST_ID].rstrip("-")
    return ProviderDocument(f"cudo-{cluster.cloud_account_id}-{short_id}-{digest}", "cudo", block)
