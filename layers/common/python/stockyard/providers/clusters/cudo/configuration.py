"""Parts of a control plane on Cudo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stockyard.domain.records import CloudAccount, Cluster
from stockyard.machines.sources import PUBLIC, Sources

API_PORT = 6443
NETWORK_CIDR = "10.160.0.0/22"
"""Of the cluster's network: 1,022 addresses, for at most 512 nodes; apart from the ranges of pods and services."""
DATA_DISK_GIB = 20
"""Of the disk with etcd's data, which outlives the machine."""
INTERNAL = "stockyard.internal"
"""The domain of the names that only a cluster's own machines know. ``.internal`` is kept free of public names."""


@dataclass(frozen=True, slots=True)
class CudoConfig:
    """Names and addresses of this stage. Fields mean what they mean in ``stockyard.settings``."""

    name_prefix: str
    api_url: str
    issuer: str
    dns_suffix: str = ""
    in_flight_seconds: int = 180
    sources: Sources = PUBLIC


@dataclass(frozen=True, slots=True)
class Profile:
    """The size of a control plane: vCPUs, GiB of memory, GiB of its boot disk."""

    vcpus: int
    memory_gib: int
    disk_gib: int


SIZES = {"sm": Profile(4, 8, 50), "md": Profile(8, 16, 100), "lg": Profile(16, 32, 200)}
"""By ``control_plane_size``. The published profiles are called ``PROFILE`` and the size."""
PROFILE = "vantage-k8s-control-"
DEFAULT_SIZE = "md"


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """Settings of the control plane's machine. Without a place it stands in the account's data center, on the cheapest
    type there that fits."""

    profile: Profile
    data_center: str | None = None
    machine_type: str | None = None
    gpus: int = 0
    gpu_model: str = ""
    pointer: str = "/settings/control_plane_size"
    """The pointer to what asks for it."""


def control_plane(settings: Mapping[str, Any]) -> ControlPlane:
    """The control group's, else that of the profile. ``settings`` are a record's: every field is there."""
    for index, group in enumerate(settings["autoscaler_node_groups"]):
        if group["role"] == "control":
            return ControlPlane(
                Profile(group["vcpus"], group["memory_gib"], group["boot_disk_size_gib"]),
                group["data_center_id"],
                group["machine_type"],
                group["gpus"],
                group["gpu_model"],
                f"/settings/autoscaler_node_groups/{index}",
            )
    return ControlPlane(SIZES[settings["control_plane_size"]])


def data_center(cluster: Cluster, account: CloudAccount) -> str:
    """Data center of the cluster's machines: the control group's data center, else the account's."""
    return control_plane(cluster.settings).data_center or str(account.attributes["data_center_id"])


def machine_name(cluster: Cluster, dns_suffix: str) -> str:
    """The name by which the cluster's own machines know its API, whatever the address is that leads there."""
    return f"{cluster.client_id}.{dns_suffix or INTERNAL}"


def is_encrypted(cluster: Cluster) -> bool:
    """Whether the data disk is encrypted, with a key from the account's Vault."""
    return not cluster.settings["no_vault"]
