"""Targets of the references of the original's resources, as tokens of ``eks_stands``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.providers.clusters.eks.names import child_name

_PLAIN: Mapping[str, str] = {
    "vpcIdSelector": "vpc",
    "clusterNameSelector": "cluster",
    "allocationIdSelector": "eip",
    "fileSystemIdSelector": "filesystem",
    "gatewayIdSelector": "igw",
    "natGatewayIdSelector": "nat",
}
_OF_GROUPS = ("securityGroupIdSelector", "referencedSecurityGroupIdSelector", "securityGroupsSelector")
_OF_ROLES = ("roleArnSelector", "nodeRoleArnSelector", "roleSelector", "policyArnSelector")


def lead(key: str, reference: Any, _kind: str, cluster: Cluster) -> frozenset[str]:
    """The things that the reference selects. Raises ``KeyError`` for one that is not known."""
    if key in ("subnetIdRef", "subnetIdRefs"):
        names = [reference["name"]] if key == "subnetIdRef" else [entry["name"] for entry in reference]
        return frozenset(_subnet_names(cluster)[name] for name in names)
    labels = reference.get("matchLabels", {})
    if key in _PLAIN:
        return frozenset({_PLAIN[key]})
    if key in _OF_ROLES:
        return frozenset({f"role:{labels['modelplane.ai/iam-role']}"})
    if key in _OF_GROUPS:
        return frozenset({"sg:efa" if "modelplane.ai/fabric" in labels else f"sg:{labels['modelplane.ai/sg-role']}"})
    if key == "routeTableIdSelector":
        return frozenset({f"rt:{labels['modelplane.ai/subnet-tier']}"})
    if key == "subnetIdSelector":
        tier, zone = labels.get("modelplane.ai/subnet-tier"), labels.get("modelplane.ai/zone")
        subnets = [text.split(":") for text in _subnet_names(cluster).values()]
        return frozenset(":".join(s) for s in subnets if tier in (None, s[1]) and zone in (None, s[2]))
    raise KeyError(key)


def _subnet_names(cluster: Cluster) -> dict[str, str]:
    """The original's names of the subnets -> their tokens."""
    names = {}
    for zone in _zones(cluster):
        names[child_name(cluster.name, f"subnet-{zone}")] = f"subnet:public:{zone}"
        names[child_name(cluster.name, f"private-subnet-{zone}")] = f"subnet:private:{zone}"
    return names


def _zones(cluster: Cluster) -> Sequence[str]:
    """The original takes the first zones of the region by their letters."""
    region = cluster.settings["region_name"]
    return [f"{region}{letter}" for letter, _ in zip("abcdef", cluster.settings["subnet_cidrs"], strict=False)]
