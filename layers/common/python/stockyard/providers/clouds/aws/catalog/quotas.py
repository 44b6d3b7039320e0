"""Room in the account's quotas for a new cluster: asked before anything is made, because a new account has few.

The codes are those of the Service Quotas console, where a person asks for more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

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
SECURITY_GROUPS = ("vpc", "L-E79EC296", "security groups")
ROLES, PROFILES = ("iam", "L-FE177D64", "IAM roles"), ("iam", "L-6E65F664", "instance profiles")
EKS_CLUSTERS = ("eks", "L-1194D53C", "EKS clusters")
GROUP_NODES = ("eks", "L-BD136A63", "nodes of a managed node group")
MOST_LIFECYCLE_POLICIES = 100
"""Lifecycle policies of an account in a region: AWS documents the number."""
IAM_REGION = "us-east-1"
"""Where the quotas of IAM are, which has no regions."""
PUBLISHED = {
    SECURITY_GROUPS[1]: 2500,
    ROLES[1]: 1000,
    PROFILES[1]: 1000,
    EKS_CLUSTERS[1]: 100,
    GROUP_NODES[1]: 450,
}
"""What accounts have by AWS's documents, for those in which Service Quotas does not say it."""
_COUNTED_NATS = [{"Name": "state", "Values": ["pending", "available", "deleting"]}]


@dataclass(frozen=True, slots=True)
class NetworkNeed:
    """Needs of a cluster besides machines, and the pointers to the settings that ask for them."""

    pointer: str
    """Of the network as a whole."""
    own: bool = True
    """Whether the VPC is one of its own, with an internet gateway."""
    balancers: int = 0
    nat_zones: Sequence[str] = field(default_factory=tuple)
    """The zone of each NAT gateway, which has an address; empty for one whose zone is not known yet."""
    nats_at: str = ""
    """Of the NAT gateways and their addresses; empty: as the network."""


@dataclass(frozen=True, slots=True)
class ServiceNeed:
    """Numbers of things that a cluster needs and that services count."""

    security_groups: int = 0
    roles: int = 0
    profiles: int = 0
    lifecycle_policies: int = 0
    eks_clusters: int = 0

    @classmethod
    def of(cls, creates: Iterable[tuple[str, str]]) -> ServiceNeed:
        """The need of a cluster for which these things are made, each a kind and a name, as in its plan."""
        kinds = Counter(kind for kind, _ in creates)
        # EKS makes a group of its own for each cluster.
        return cls(
            kinds["security group"] + kinds["eks cluster"],
            kinds["iam role"],
            kinds["instance profile"],
            kinds["snapshot policy"],
            kinds["eks cluster"],
        )


def findings(
    calls: Calls, machines: Sequence[MachineNeed], network: NetworkNeed, services: ServiceNeed | None = None
) -> Iterator[Finding]:
    """Each quota that has no room for the cluster. A warning when only some of the types have no room, and when our
    role may not look."""
    try:
        yield from _network(calls, network)
        yield from processor_quotas.findings(calls, machines, quota)
        yield from _services(calls, services or ServiceNeed())
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


def _services(calls: Calls, need: ServiceNeed) -> Iterator[Finding]:
    region, account = "/settings/region_name", "/cloud_account_id"
    counted = (
        (region, SECURITY_GROUPS, need.security_groups, ("ec2", "describe_security_groups", "SecurityGroups")),
        (account, ROLES, need.roles, ("iam", "list_roles", "Roles")),
        (account, PROFILES, need.profiles, ("iam", "list_instance_profiles", "InstanceProfiles")),
        (region, EKS_CLUSTERS, need.eks_clusters, ("eks", "list_clusters", "clusters")),
    )
    for pointer, row, needed, listing in counted:
        if needed:
            used = sum(1 for _ in calls.pages(*listing))
            there = replace(calls, region=IAM_REGION) if row[0] == "iam" else calls
            location = "the account" if row[0] == "iam" else ""
            yield from _count(there, pointer, row, used, needed, location)
    if need.lifecycle_policies:
        used = len(calls.call("dlm", "get_lifecycle_policies")["Policies"])
        if used + need.lifecycle_policies > MOST_LIFECYCLE_POLICIES:
            noun, needed_text = "lifecycle policies", str(need.lifecycle_policies)
            detail = text(calls.region, "of dlm", MOST_LIFECYCLE_POLICIES, noun, used, needed_text)
            yield Finding(region, detail)


def nodes_of_group(calls: Calls) -> float:
    """Largest number of nodes of a managed node group in the account."""
    return quota(calls, GROUP_NODES[0], GROUP_NODES[1])


def _nat_gateways(calls: Calls, pointer: str, zones: Sequence[str]) -> Iterator[Finding]:
    if not zones:
        return
    used: Counter[str] = Counter()
    described = calls.pages("ec2", "describe_nat_gateways", "NatGateways", Filters=_COUNTED_NATS)
    subnets = [str(gateway["SubnetId"]) for gateway in described if gateway.get("SubnetId")]
    if subnets:
        of_gateways = [{"Name": "subnet-id", "Values": sorted(set(subnets))}]
        zones_by_subnet = {
            str(subnet["SubnetId"]): str(subnet["AvailabilityZone"])
            for subnet in calls.pages("ec2", "describe_subnets", "Subnets", Filters=of_gateways)
        }
        used.update(zones_by_subnet.get(subnet, "") for subnet in subnets)
    for zone in zones:
        yield from _count(calls, pointer, NAT_GATEWAYS, used[zone], location=zone)


def _count(
    calls: Calls, pointer: str, row: tuple[str, str, str], used: int, needed: int = 1, location: str = ""
) -> Iterator[Finding]:
    service, code, noun = row
    limit = quota(calls, service, code)
    if used + needed > limit:
        yield Finding(pointer, text(location or calls.region, code, limit, noun, used, str(needed)))


def quota(calls: Calls, service: str, code: str) -> float:
    """Quota of the account: what was raised for it, else what every account has; without end where the region does not
    have the quota."""
    parameters = {"ServiceCode": service, "QuotaCode": code}
    try:
        # Of a quota that nobody has raised there may be no value of the account's own.
        applied = calls.call("service-quotas", "get_service_quota", **parameters)
        return float(applied["Quota"]["Value"])
    except (VendorNotFound, VendorRefused):
        pass
    try:
        usual = calls.call("service-quotas", "get_aws_default_service_quota", **parameters)
        return float(usual["Quota"]["Value"])
    except (VendorNotFound, VendorRefused, PermissionDenied):
        # Not every region of every partition has every quota, and older templates do not let us ask.
        return PUBLISHED.get(code, math.inf)


text = processor_quotas.text
