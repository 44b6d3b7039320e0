"""Number of addresses in the private subnets of a cluster, and the reserve that its nodes keep of them.

The network of EKS gives each pod an address of the VPC, and keeps a reserve on each node. Its usual one is a whole
interface: on an m6i.xlarge 30 addresses with what the node itself has, so that three subnets of /20 serve 409 nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from typing import Any

from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.records import Cluster
from stockyard.ports import Finding
from stockyard.providers.clusters.eks import layout
from stockyard.providers.clusters.eks.configuration import node_groups

OF_AWS = 5
"""Addresses of each subnet that AWS keeps for itself."""
USUAL = 30
"""What a node keeps by the network's usual reserve."""
FEWEST, SPARE = 10, 2
"""For how many pods a node has addresses at least, and how many are spare, where there are few (`MINIMUM_IP_TARGET`,
`WARM_IP_TARGET`)."""
LEAST = FEWEST + 1
"""What a node keeps then, its own address among them."""


def room(settings: Mapping[str, Any]) -> int:
    """Number of addresses for nodes and pods."""
    subnets = layout.private_cidrs(str(settings["vpc_cidr"]), settings["subnet_cidrs"])
    return sum(IPv4Network(subnet).num_addresses - OF_AWS for subnet in subnets)


def is_scarce(cluster: Cluster) -> bool:
    """Whether the groups may come to have more nodes than there are addresses for by the usual reserve."""
    most = sum(int(group.get("max_size") or 0) for group in node_groups(cluster))
    return most * USUAL > room(cluster.settings)


def reserve(cluster: Cluster) -> dict[str, str]:
    """Settings of the network for its reserve: nothing where there are addresses enough for the usual one, since a
    small one makes more calls."""
    if not is_scarce(cluster):
        return {}
    return {"MINIMUM_IP_TARGET": str(FEWEST), "WARM_IP_TARGET": str(SPARE)}


def findings(cluster: Cluster, groups: Iterator[tuple[str, Group]]) -> Iterator[Finding]:
    """The group with which there are more nodes than addresses: a fault where they are there from the start, a warning
    where they may come."""
    named, addresses = list(groups), room(cluster.settings)
    most = addresses // LEAST
    for field in ("count", "max_size"):
        count = sum(int(group[field]) for group in node_groups(cluster) if group.get("builtin"))
        for pointer, group in named:
            count += int(group.get(field) or 0)
            if count > most:
                text = (
                    f"The private subnets have {addresses} addresses, of which a node keeps {LEAST} and each further"
                    f" pod takes one: they serve {most} nodes at most, and the groups up to this one have {count}. Give"
                    " the cluster a larger vpc_cidr and subnets, or fewer nodes."
                )
                yield Finding(f"{pointer}/{field}", text, warning=field == "max_size")
                break
