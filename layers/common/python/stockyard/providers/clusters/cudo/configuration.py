"""What a control plane on Cudo is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
    """What the settings ask of the control plane's machine. Without a place it stands in the account's data center, on
    the cheapest type there that fits."""

    profile: Profile
    data_center: str | None = None
    machine_type: str | None = None
    gpus: int = 0
    gpu_model: str = ""
    place: str = "/settings/control_plane_size"
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
