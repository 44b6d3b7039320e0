"""The network of a cluster's record, with the defaults for missing settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

FOR_ALL, PER_ZONE = "one", "per_zone"
BASTION_TYPE = "t3.micro"
"""The bastion's instance type when nothing names one."""
BASTION_DISK_GIB = 8
RDP_FAULT = "RDP (port 3389) is for Windows images, and machines of a cluster run Linux: SSH is the way in"
USUAL_ZONES, ZONES_OF_SEVERAL = 2, 3
"""How many zones a cluster has that names none: with one member of its control plane, and with several."""


def is_given(settings: Mapping[str, Any]) -> bool:
    """Whether the tenant names a VPC or a subnet."""
    return bool(settings.get("vpc_id") or settings.get("subnet_id"))


def named_subnets(settings: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The subnets by zone of an existing VPC, where somebody has named them."""
    return list(settings.get("subnets") or ())


def control_plane_size(settings: Mapping[str, Any]) -> int:
    """Number of members of the control plane: the setting, else the control group's size, else one."""
    groups = settings.get("autoscaler_node_groups") or ()
    control: Mapping[str, Any] = next((group for group in groups if group.get("role") == "control"), {})
    return int(settings.get("control_plane_size") or control.get("max_size") or 1)


def zone_count(settings: Mapping[str, Any]) -> int:
    """Number of zones of the cluster: those that are named, else what its control plane wants."""
    zones = named_subnets(settings) or settings.get("zones")
    if zones:
        return len(zones)
    return ZONES_OF_SEVERAL if control_plane_size(settings) > 1 else USUAL_ZONES


def has_nat_in_each_zone(settings: Mapping[str, Any]) -> bool:
    """Whether each zone has a NAT gateway, so that none depends on another. Clusters of earlier releases have one."""
    return settings.get("nat_gateways") == PER_ZONE


def nat_count(settings: Mapping[str, Any]) -> int:
    """Number of NAT gateways of our own."""
    if is_given(settings):
        return 0
    return zone_count(settings) if has_nat_in_each_zone(settings) else 1


def bastion_of(settings: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The bastion's settings; None where it is off."""
    bastion = settings.get("bastion")
    return bastion if bastion and bastion.get("enabled") else None
