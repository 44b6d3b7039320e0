"""Reach of a cluster's API: from everywhere, from named public addresses, or from private networks alone.

Stockyard installs the agent by the API. The stage's functions reach a private endpoint by way of the stage's network,
and a public one that names addresses by those of that network's NAT gateways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.ports import Finding
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.network.security_groups import authorize

EVERYWHERE = "0.0.0.0/0"
PRIVATE = "private"
_HTTPS = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}
_RULE_OF_RANGES = "Reaches the API by a private network"
_POINTER, _CIDRS = "/settings/endpoint", "/settings/public_access_cidrs"


def is_private(cluster: Cluster) -> bool:
    """Whether nobody reaches the API from outside."""
    return cluster.settings.get("endpoint") == PRIVATE


def access(cluster: Cluster) -> dict[str, Any]:
    """The reach as EKS takes it. Machines inside the VPC are always let in."""
    if is_private(cluster):
        return {"endpointPublicAccess": False, "endpointPrivateAccess": True}
    cidrs = list(cluster.settings.get("public_access_cidrs") or [EVERYWHERE])
    return {"endpointPublicAccess": True, "endpointPrivateAccess": True, "publicAccessCidrs": cidrs}


def change(cluster: Cluster, present: Mapping[str, Any]) -> str | None:
    """The words for what of the reach differs from the settings; None where nothing does."""
    target = access(cluster)
    if bool(present.get("endpointPublicAccess", True)) != target["endpointPublicAccess"]:
        return f"the API is {'opened to' if target['endpointPublicAccess'] else 'closed from'} outside"
    cidrs = target.get("publicAccessCidrs")
    if cidrs and sorted(present.get("publicAccessCidrs") or [EVERYWHERE]) != sorted(cidrs):
        return f"the API is opened to {', '.join(cidrs)} alone"
    return None


def let_in(calls: Calls, cluster: Cluster, group: str) -> None:
    """Let the ranges of the settings reach the API through the cluster's security group, and former ones no more."""
    target_ranges = {str(cidr) for cidr in cluster.settings.get("private_access_cidrs") or ()}
    described = calls.described_items("describe_security_groups", "SecurityGroups", GroupIds=[group])
    present = {
        str(entry["CidrIp"])
        for item in described
        for rule in item.get("IpPermissions", ())
        for entry in rule.get("IpRanges", ())
        if entry.get("Description") == _RULE_OF_RANGES
    }
    for cidr in sorted(target_ranges - present):
        authorize(calls, group, {**_HTTPS, "IpRanges": [{"CidrIp": cidr, "Description": _RULE_OF_RANGES}]})
    for cidr in sorted(present - target_ranges):
        former = {**_HTTPS, "IpRanges": [{"CidrIp": cidr}]}
        calls.call("ec2", "revoke_security_group_ingress", GroupId=group, IpPermissions=[former])


def findings(cluster: Cluster, addresses: Sequence[str]) -> Iterator[Finding]:
    """Findings of a reach that shuts Stockyard out. ``addresses``: those by which the stage's functions go out; none
    where Lambda chooses them, and so outside of every network."""
    cidrs = [str(cidr) for cidr in cluster.settings.get("public_access_cidrs") or ()]
    if is_private(cluster):
        yield _private(addresses)
    elif cidrs and not addresses:
        text = (
            "Stockyard installs the cluster's agent from outside, and this stage's functions come from addresses that"
            " change. Its operator gives it a network with NAT gateways, and their addresses as egress_addresses."
        )
        yield Finding(_CIDRS, text, warning=True)
    elif cidrs:
        ranges = [IPv4Network(cidr) for cidr in cidrs]
        outside = [address for address in addresses if not any(IPv4Address(address) in each for each in ranges)]
        if outside:
            text = f"must contain the addresses by which Stockyard installs the cluster's agent: {', '.join(outside)}"
            yield Finding(_CIDRS, text)


def _private(addresses: Sequence[str]) -> Finding:
    if not addresses:
        text = (
            "must be public: Stockyard installs the cluster's agent by the API, and this stage's functions are in no"
            " network. Its operator gives it one with a way to this VPC, and egress_addresses."
        )
        return Finding(_POINTER, text)
    text = (
        "Stockyard installs the cluster's agent from the stage's network: that needs a route to this VPC, by peering or"
        " a transit gateway, and its range among private_access_cidrs."
    )
    return Finding(_POINTER, text, warning=True)


def hint(cluster: Cluster) -> str | None:
    """Advice where the API was not reached; None where everybody reaches it."""
    if is_private(cluster):
        return "The API is private: the stage's network needs a route to the VPC, and private_access_cidrs its range."
    if cluster.settings.get("public_access_cidrs"):
        return "Stockyard reaches the cluster from outside: public_access_cidrs must contain where it comes from."
    return None
