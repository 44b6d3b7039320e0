"""What the provider is configured with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.providers.clouds.aws import DEFAULT_REGION

DEFAULT_TYPE = "t3.xlarge"
"""The control plane's instance type when nothing names one."""
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
    audience: str
    """Of the tokens that a cluster's API server takes; the API's own takes none of them."""
    visibility_seconds: int = 60


def region(cluster: Cluster) -> str:
    """The region of a cluster."""
    return str(cluster.settings.get("region_name") or DEFAULT_REGION)


def control_plane_type(cluster: Cluster) -> str:
    """The control group's first type, else ``control_plane_instance_type``, else the default."""
    for group in cluster.settings.get("autoscaler_node_groups") or ():
        if group.get("role") == "control" and group.get("instance_types"):
            return str(group["instance_types"][0])
    return str(cluster.settings.get("control_plane_instance_type") or DEFAULT_TYPE)


def etcd_volume_gib(cluster: Cluster) -> int:
    """The size of the volume with etcd's data, in GiB."""
    return int(cluster.settings.get("etcd_volume_gib", ETCD_VOLUME_GIB))


def etcd_snapshots(cluster: Cluster) -> int:
    """How many daily snapshots of that volume there are; 0 for none."""
    return int(cluster.settings.get("etcd_snapshots", ETCD_SNAPSHOTS))


def types_of_groups(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The instance types of the node groups, each with the pointer to where it is written."""
    for i, group in enumerate(settings.get("autoscaler_node_groups") or ()):
        for j, name in enumerate(group.get("instance_types") or ()):
            yield f"/settings/autoscaler_node_groups/{i}/instance_types/{j}", str(name)
