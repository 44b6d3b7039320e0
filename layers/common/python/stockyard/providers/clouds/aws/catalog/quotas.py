"""What the account's quotas leave for a new cluster: asked before anything is made, because a new account has few.

The codes are those of the Service Quotas console, where a person asks for more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stockyard.errors import PermissionDenied, VendorNotFound, VendorRefused
from stockyard.ports import Finding
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.catalog import processor_quotas
from stockyard.providers.clouds.aws.catalog.processor_quotas import MachineNeed

VPCS, ADDRESSES = ("vpc", "L-F678F1CE", "VPCs"), ("ec2", "L-0263D0A3", "Elastic IP addresses")
INTERNET_GATEWAYS = ("vpc", "L-A4707A72", "internet gateways")
BALANCERS = ("elasticloadbalancing", "L-69A177A2", "network load balancers")
NAT_GATEWAYS = ("vpc", "L-FE5A380F", "NAT gateways")
"""Service, code, and what is counted; NAT gateways in each zone, all else in the region."""
_COUNTED_NATS = [{"Name": "state", "Values": ["pending", "available", "deleting"]}]


@dataclass(frozen=True, slots=True)
class NetworkNeed:
    """What a cluster needs besides machines, and the pointers to what of the settings asks for it."""

    pointer: str
    """Of the network as a whole."""
    own: bool = True
    """Whether the VPC is one of its own, with an internet gateway."""
    balancers: int = 0
    nat_zones: Sequence[str] = field(default_factory=tuple)
    """The zone of each NAT gateway, which has an address; empty for one whose zone is not known yet."""
    nats_at: str = ""
    """Of the NAT gateways and their addresses; empty: as the network."""


def findings(calls: Calls, machines: Sequence[MachineNeed], network: NetworkNeed) -> Iterator[Finding]:
    """Each quota that has no room for the cluster. A warning when only some of the types have no room, and when our
    role may not look."""
    try:
        yield from _network(calls, network)
        yield from processor_quotas.findings(calls, machines, quota)
    except PermissionDenied:
        yield Finding(
            "/cloud_account_id",
            "The quotas of the AWS account could not be looked at. Deploy the account's current template again.",
            warning=True,
        )


def _network(calls: Calls, need: NetworkNeed) -> Iterator[Finding]:
    if need.own:
        yield from _count(calls, need.pointer, VPCS, len(list(calls.pages("ec2", "describe_vpcs", "Vpcs"))))
        gateways = calls.pages("ec2", "describe_internet_gateways", "InternetGateways")
        yield from _count(calls, need.pointer, INTERNET_GATEWAYS, len(list(gateways)))
    if need.balancers:
        listing = calls.pages("elbv2", "describe_load_balancers", "LoadBalancers")
        used = sum(1 for balancer in listing if balancer.get("Type") == "network")
        yield from _count(calls, "/settings/region_name", BALANCERS, used, need.balancers)
    if need.nat_zones:
        pointer = need.nats_at or need.pointer
        # DescribeAddresses is the one that has no pages.
        used = len(calls.call("ec2", "describe_addresses")["Addresses"])
        yield from _count(calls, pointer, ADDRESSES, used, len(need.nat_zones))
        yield from _nat_gateways(calls, pointer, [zone for zone in need.nat_zones if zone])


def _nat_gateways(calls: Calls, pointer: str, zones: Sequence[str]) -> Iterator[Finding]:
    if not zones:
        return
    used: Counter[str] = Counter()
    described = calls.pages("ec2", "describe_nat_gateways", "NatGateways", Filters=_COUNTED_NATS)
    subnets = [str(gateway["SubnetId"]) for gateway in described if gateway.get("SubnetId")]
    if subnets:
        of_gateways = [{"Name": "subnet-id", "Values": sorted(set(subnets))}]
        places = {
            str(subnet["SubnetId"]): str(subnet["AvailabilityZone"])
            for subnet in calls.pages("ec2", "describe_subnets", "Subnets", Filters=of_gateways)
        }
        used.update(places.get(subnet, "") for subnet in subnets)
    for zone in zones:
        yield from _count(calls, pointer, NAT_GATEWAYS, used[zone], place=zone)


def _count(
    calls: Calls, pointer: str, row: tuple[str, str, str], used: int, needed: int = 1, place: str = ""
) -> Iterator[Finding]:
    service, code, noun = row
    limit = quota(calls, service, code)
    if used + needed > limit:
        yield Finding(pointer, text(place or calls.region, code, limit, noun, used, str(needed)))


def quota(calls: Calls, service: str, code: str) -> float:
    """What the account may have; without end where the region does not have the quota."""
    try:
        answer: Mapping[str, Any] = calls.call(
            "service-quotas", "get_service_quota", ServiceCode=service, QuotaCode=code
        )
    except (VendorNotFound, VendorRefused):
        # Not every region of every partition has every quota.
        return math.inf
    return float(answer["Quota"]["Value"])


text = processor_quotas.text
