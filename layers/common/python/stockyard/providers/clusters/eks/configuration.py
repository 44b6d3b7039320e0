"""Configuration of the driver, and the values that it reads of a cluster's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.providers.clouds.aws import DEFAULT_REGION

EFA = "efa"
"""The fabric of a group whose machines talk past their kernels."""


@dataclass(frozen=True, slots=True)
class EksConfig:
    """Names and addresses of this stage. Fields mean what they mean in ``stockyard.settings``."""

    name_prefix: str
    api_url: str
    issuer: str
    visibility_seconds: int = 60
    egress_addresses: tuple[str, ...] = ()


def region(cluster: Cluster) -> str:
    """The region of a cluster."""
    return str(cluster.settings.get("region_name") or DEFAULT_REGION)


def node_groups(cluster: Cluster) -> Sequence[Mapping[str, Any]]:
    """The groups of the cluster's settings."""
    return list(cluster.settings.get("node_groups") or ())


def is_by_template(group: Mapping[str, Any]) -> bool:
    """Whether the group's launch template says the instance type: EKS itself knows no capacity block and no EFA."""
    return bool(group.get("capacity_reservation_id")) or group.get("fabric") == EFA


def has_placement_group(group: Mapping[str, Any]) -> bool:
    """Whether the group's machines stand close to each other: one such placement is of one zone, and a capacity block
    has its own."""
    return group.get("fabric") == EFA and not group.get("capacity_reservation_id") and len(group["zones"]) == 1


def has_block_storage(cluster: Cluster) -> bool:
    """Whether the cluster has a driver of EBS and a default StorageClass."""
    return bool(cluster.settings.get("block_storage"))


def has_storage(cluster: Cluster) -> bool:
    """Whether the cluster has a file system that many pods write."""
    return bool(cluster.settings.get("shared_storage", True))
