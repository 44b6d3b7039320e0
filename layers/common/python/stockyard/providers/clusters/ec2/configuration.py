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


def types_of_groups(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The instance types of the node groups, each with the pointer to where it is written."""
    for i, group in enumerate(settings.get("autoscaler_node_groups") or ()):
        for j, name in enumerate(group.get("instance_types") or ()):
            yield f"/settings/autoscaler_node_groups/{i}/instance_types/{j}", str(name)
