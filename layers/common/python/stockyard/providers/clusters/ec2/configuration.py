"""Configuration of the provider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.domain.clusters.control_plane import DISK_GIB
from stockyard.domain.records import Cluster
from stockyard.machines.sources import PUBLIC, Sources
from stockyard.providers.clouds.aws import DEFAULT_REGION

DEFAULT_TYPES = ("t3.xlarge", "t3a.xlarge", "m5.xlarge")
"""The control plane's instance types when nothing names one, in the order in which they are tried."""
DEFAULT_CIDR = "10.0.0.0/16"
"""The range of a cluster's own VPC when nothing names one."""
EVERYWHERE = "0.0.0.0/0"
ETCD_VOLUME_GIB, LEAST_ETCD_GIB, MOST_ETCD_GIB = 20, 10, 1024
"""Of the volume with etcd's data and snapshots: etcd takes 2 GiB at most, and so does each of its four snapshots."""
ETCD_SNAPSHOTS, MOST_SNAPSHOTS = 7, 365
"""Daily snapshots of that volume. 0 is none."""


@dataclass(frozen=True, slots=True)
class Ec2Config:
    """Names and addresses of this stage. Fields mean what they mean in ``stockyard.settings``."""

    name_prefix: str
    api_url: str
    issuer: str
    visibility_seconds: int = 60
    sources: Sources = PUBLIC


def region(cluster: Cluster) -> str:
    """The region of a cluster."""
    return str(cluster.settings.get("region_name") or DEFAULT_REGION)


def vpc_cidr(cluster: Cluster) -> str:
    """The range of the cluster's own VPC."""
    return str(cluster.settings.get("vpc_cidr") or DEFAULT_CIDR)


def control_plane_types(cluster: Cluster) -> tuple[str, ...]:
    """The types of the control plane in the order in which they are tried: the control group's, else
    ``control_plane_instance_types``, else the one of ``control_plane_instance_type``, else the default ones."""
    return tuple(name for _, name in named_control_plane_types(cluster.settings)) or DEFAULT_TYPES


def named_control_plane_types(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each type of the control plane that somebody has named, with the pointer to where it is written."""
    for index, group in enumerate(settings.get("autoscaler_node_groups") or ()):
        if group.get("role") == "control" and group.get("instance_types"):
            return _listed(f"/settings/autoscaler_node_groups/{index}/instance_types", group["instance_types"])
    types = list(settings.get("control_plane_instance_types") or ())
    if len(types) > 1:
        return _listed("/settings/control_plane_instance_types", types) if tuple(types) != DEFAULT_TYPES else []
    single = settings.get("control_plane_instance_type") or next(iter(types), None)
    return [("/settings/control_plane_instance_type", str(single))] if single else []


def _listed(pointer: str, names: Sequence[str]) -> list[tuple[str, str]]:
    return [(f"{pointer}/{index}", str(name)) for index, name in enumerate(names)]


def control_plane_disk_gib(settings: Mapping[str, Any]) -> int:
    """The size of a member's root disk, in GiB: the control group's, else the usual one."""
    return int(_control_group(settings).get("root_disk_gib") or DISK_GIB)


def control_plane_zones(settings: Mapping[str, Any]) -> Sequence[str]:
    """The zones that members of the control plane stand in; none for all of the cluster's."""
    return list(_control_group(settings).get("zones") or ())


def _control_group(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    groups = settings.get("autoscaler_node_groups") or ()
    return next((group for group in groups if group.get("role") == "control"), {})


def etcd_volume_gib(cluster: Cluster) -> int:
    """The size of the volume with etcd's data, in GiB."""
    return int(cluster.settings.get("etcd_volume_gib", ETCD_VOLUME_GIB))


def etcd_snapshots(cluster: Cluster) -> int:
    """Number of daily snapshots of that volume; 0 for none."""
    return int(cluster.settings.get("etcd_snapshots", ETCD_SNAPSHOTS))


def cloud_controllers(cluster: Cluster) -> bool:
    """Whether the cluster has AWS's controllers. Clusters of releases before the setting have none."""
    return bool(cluster.settings.get("cloud_controllers"))


def types_of_groups(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The instance types of the workers' groups, each with the pointer to where it is written."""
    for i, group in enumerate(settings.get("autoscaler_node_groups") or ()):
        if group.get("role") == "control":
            continue
        for j, name in enumerate(group.get("instance_types") or ()):
            yield f"/settings/autoscaler_node_groups/{i}/instance_types/{j}", str(name)
