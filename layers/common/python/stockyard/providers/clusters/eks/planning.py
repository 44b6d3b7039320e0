"""Parts and costs of a cluster on EKS, as its settings and the catalogue say. No call is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.domain.values.notes import Note
from stockyard.domain.values.prices import HOURS_A_MONTH, PriceItem
from stockyard.machines import manifests
from stockyard.ports import ClusterPlan, Finding, PriceList
from stockyard.providers.clouds.aws.catalog.offerings import price_remarks
from stockyard.providers.clouds.aws.catalog.reserved import EKS_DISK_GIB
from stockyard.providers.clouds.aws.kinds import eks as eks_kinds
from stockyard.providers.clusters.eks import addons, layout, names, network
from stockyard.providers.clusters.eks.access import access, identity
from stockyard.providers.clusters.eks.configuration import (
    EFA,
    has_block_storage,
    has_placement_group,
    has_storage,
    node_groups,
    region,
)
from stockyard.providers.clusters.eks.storage import STORAGE_CLASS

_CONTROL_PLANE = (("control_plane/eks_cluster", 1),)


def plan(cluster: Cluster, prices: PriceList, prefix: str) -> ClusterPlan:
    """See ``ports.ClusterDriver.plan``. ``prefix`` begins the names of roles."""
    remarks = (*price_remarks(region(cluster), prices), *_nat_remarks(cluster, prices))
    return ClusterPlan(tuple(creates(cluster, prefix)), tuple(price_items(cluster, prices)), remarks)


def _nat_remarks(cluster: Cluster, prices: PriceList) -> Iterator[Finding]:
    """A note that one NAT gateway for all zones is the way out of all, and the price of one in each."""
    zones, region_name = len(cluster.settings["subnet_cidrs"]), region(cluster)
    gateway, address = prices.rate(region_name, "nat_gateway"), prices.rate(region_name, "public_ipv4")
    if network.has_nat_in_each_zone(cluster) or gateway is None or address is None:
        return
    month = (gateway + address) * HOURS_A_MONTH
    text = (
        f"One NAT gateway for {zones} zones costs {month:.2f} USD a month; all of them depend on the first, and traffic"
        f" between zones is billed besides. One in each would cost {month * zones:.2f}."
    )
    yield Finding("/settings/nat_gateways", Note(text), warning=True)


def price_items(cluster: Cluster, prices: PriceList) -> list[PriceItem]:
    """Prices of what is billed while the cluster stands, without the nodes of its groups: those are ``group_items``."""
    region_name, count = region(cluster), nat_gateways(cluster)
    items = [_control_plane(cluster, prices)]
    items.append(_times("NAT gateway", count, prices.rate(region_name, "nat_gateway"), ("network/nat_gateway", 1)))
    items.append(_times("public IPv4 address", count, prices.rate(region_name, "public_ipv4"), ("network/address", 1)))
    if has_storage(cluster):
        # A new file system is empty, and an elastic one costs what is in it and what goes through it.
        month = prices.rate(region_name, "efs")
        text = "EFS, empty at first" if month is None else f"EFS, empty at first; {month:g} USD a GB and month"
        items.append(PriceItem(text, 1, 0.0, (("storage/file_system", 1),)))
    return items


def group_items(cluster: Cluster, prices: PriceList) -> Sequence[PriceItem]:
    """See ``ports.clusters.ServesNodeGroups.group_items``."""
    region_name = region(cluster)
    items: list[PriceItem] = []
    for group in node_groups(cluster):
        always, first = int(group["min_size"]), int(group["count"]) - int(group["min_size"])
        if always:
            items += _nodes(group, always, region_name, prices, "always")
        if first > 0:
            items += _nodes(group, first, region_name, prices, "at first")
    return items


def nat_gateways(cluster: Cluster) -> int:
    """Number of NAT gateways."""
    return len(cluster.settings["subnet_cidrs"]) if network.has_nat_in_each_zone(cluster) else 1


def name_findings(cluster: Cluster, prefix: str) -> Iterator[Finding]:
    """Names that AWS would refuse."""
    for key in identity.keys(cluster):
        role = names.role_name(prefix, cluster.client_id, f"{key}-role")
        if len(role) > names.LONGEST_ROLE:
            yield Finding("/name", f"The role name {role} would have more than {names.LONGEST_ROLE} characters.")
            return


def _control_plane(cluster: Cluster, prices: PriceList) -> PriceItem:
    """In standard or in extended support; the latter's price comes on top."""
    region_name = region(cluster)
    rate = prices.rate(region_name, "eks")
    if _is_extended(cluster, prices):
        surcharge = prices.rate(region_name, "eks_extended")
        total = None if rate is None or surcharge is None else rate + surcharge
        return PriceItem("EKS control plane in extended support", 1, total, _CONTROL_PLANE)
    return PriceItem("EKS control plane", 1, rate, _CONTROL_PLANE)


def _is_extended(cluster: Cluster, prices: PriceList) -> bool:
    """Whether the version's standard support is over, on the day that the cluster is of."""
    day = cluster.created_at[:10]
    offers = prices.versions(region(cluster))
    offered = next((offer for offer in offers if offer.version == cluster.kubernetes_version), None)
    return offered is not None and offered.support(day) == "extended"


def _nodes(group: Mapping[str, Any], count: int, region_name: str, prices: PriceList, when: str) -> Iterator[PriceItem]:
    noun, made_as = "node" if count == 1 else "nodes", (f"node_groups/{eks_kinds.NODE_GROUP.name}", count)
    text = f"{count} {noun} of pool {group['name']} ({group['instance_type']}) {when}"
    if group.get("capacity_reservation_id"):
        yield PriceItem(f"{text}, at what its capacity block was bought for", count, None, (made_as,))
    else:
        offer = prices.instance(region_name, str(group["instance_type"]))
        yield _times(text, count, None if offer is None else offer["usd_hour"], made_as)
    gib = int(group.get("disk_gib") or EKS_DISK_GIB)
    month = prices.rate(region_name, "gp3")
    rate = None if month is None else month * gib / HOURS_A_MONTH
    yield _times(f"disk gp3 {gib} GiB of pool {group['name']} {when}", count, rate, made_as)


def _times(name: str, count: int, rate: float | None, *made_as: tuple[str, int]) -> PriceItem:
    return PriceItem(name, count, None if rate is None else rate * count, made_as)


def creates(cluster: Cluster, prefix: str) -> Iterator[tuple[str, str]]:
    """Kind and name of each thing that is made for the cluster."""
    eks = names.cluster_name(cluster)
    yield from _network(cluster)
    for key in identity.keys(cluster):
        yield "iam role", names.role_name(prefix, cluster.client_id, f"{key}-role")
    yield "eks cluster", f"{eks} (Kubernetes {cluster.kubernetes_version})"
    for role, policy in access.POLICIES.items():
        yield "access entry", f"{role} ({policy})"
    if any(group.get("fabric") == EFA for group in node_groups(cluster)):
        yield "security group", f"{names.stem(cluster)}-efa"
    for group in node_groups(cluster):
        if has_placement_group(group):
            yield "placement group", names.part(cluster, f"pg-{group['name']}")
        yield "launch template", names.part(cluster, f"lt-{group['name']}")
        limits = f"{group['count']} at first, {group['min_size']} to {group['max_size']}"
        yield "node group", f"{group['name']} ({group['instance_type']}, {limits})"
    for name in addons.addons(cluster):
        yield "add-on", name
    if has_block_storage(cluster):
        yield "pod identity", f"{addons.NAMESPACE}/{addons.ACCOUNT_OF_VOLUMES}"
        yield "storage class", str(manifests.STORAGE_CLASS["metadata"]["name"])
    if has_storage(cluster):
        yield "pod identity", f"{addons.NAMESPACE}/{addons.ACCOUNT}"
        yield "security group", f"{names.stem(cluster)}-efs"
        yield "file system", f"{names.stem(cluster)}-efs"
        yield "mount target", f"{names.stem(cluster)}-efs, one in each zone"
        yield "storage class", STORAGE_CLASS


def _network(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Each subnet, gateway and table by its own name; zones that nobody names are the region's first ones."""
    public = list(cluster.settings["subnet_cidrs"])
    zones = [str(zone) for zone in cluster.settings.get("zones") or ()]
    yield "vpc", f"{names.part(cluster, 'vpc')} ({network.vpc_cidr(cluster)})"
    yield "internet gateway", names.part(cluster, "igw")
    for stem, cidrs in (
        ("subnet-", public),
        ("private-subnet-", layout.private_cidrs(network.vpc_cidr(cluster), public)),
    ):
        for index, cidr in enumerate(cidrs):
            yield "subnet", f"{names.part(cluster, stem + _zone_mark(zones, index))} ({cidr})"
    for index in range(nat_gateways(cluster)):
        yield "nat gateway", f"{names.part(cluster, 'nat-' + _zone_mark(zones, index))} (with an address)"
    yield "route table", names.part(cluster, "public-routes")
    for index in range(nat_gateways(cluster)):
        zone = f"-{_zone_mark(zones, index)}" if network.has_nat_in_each_zone(cluster) else ""
        yield "route table", names.part(cluster, f"{network.PRIVATE}{zone}-routes")
    yield "vpc endpoint", names.part(cluster, "s3")


def _zone_mark(zones: Sequence[str], index: int) -> str:
    """Mark that tells apart the parts in one zone: a number while nobody knows the zone."""
    return zones[index] if zones else str(index + 1)
