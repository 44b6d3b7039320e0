"""What a cluster needs and costs, as its settings and the catalogue say. No call is made."""

from __future__ import annotations

from collections.abc import Iterator

from stockyard import kubernetes_versions
from stockyard.domain.control_plane import DISK_GIB, LEAST_MEMORY_MIB, LEAST_VCPU
from stockyard.domain.prices import HOURS_A_MONTH, PriceItem
from stockyard.domain.records import Cluster
from stockyard.ports import ClusterPlan, Finding, PriceList
from stockyard.providers.clusters.ec2.configuration import (
    cloud_controllers,
    control_plane_types,
    etcd_snapshots,
    etcd_volume_gib,
    named_control_plane_types,
    region,
    types_of_groups,
    vpc_cidr,
)
from stockyard.providers.clusters.ec2.network import is_given

ROLE_NAME_LIMIT = 64
BALANCER_ADDRESSES = 2
"""Public addresses of the load balancer: one a zone; in a given VPC at most as many."""


def plan(cluster: Cluster, prices: PriceList, prefix: str) -> ClusterPlan:
    """See ``ports.ClusterDriver.plan``. ``prefix`` begins every name."""
    return ClusterPlan(tuple(_creates(cluster, f"{prefix}-{cluster.client_id}")), tuple(price_items(cluster, prices)))


def price_items(cluster: Cluster, prices: PriceList) -> list[PriceItem]:
    """Everything of a cluster that is billed while it stands, without its workers."""
    place, machine = region(cluster), control_plane_types(cluster)[0]
    offer = prices.instance(place, machine)
    gigabyte_month = prices.rate(place, "gp3")
    own_network = not is_given(cluster.settings)
    nat_addresses = 1 if own_network else 0
    addresses = BALANCER_ADDRESSES + nat_addresses + (1 if cluster.settings.get("public_control_plane") else 0)
    items = [
        PriceItem(f"control plane instance {machine}", 1, offer["usd_hour"] if offer else None),
        PriceItem(f"control plane disk gp3 {DISK_GIB} GiB", 1, _an_hour(gigabyte_month, DISK_GIB)),
        PriceItem("network load balancer", 1, prices.rate(place, "network_load_balancer")),
        *_etcd_items(cluster, gigabyte_month, prices.rate(place, "ebs_snapshot")),
    ]
    if own_network:
        items.append(PriceItem("NAT gateway", 1, prices.rate(place, "nat_gateway")))
    address = prices.rate(place, "public_ipv4")
    items.append(PriceItem("public IPv4 address", addresses, None if address is None else address * addresses))
    return items


def _etcd_items(cluster: Cluster, gigabyte_month: float | None, snapshot_month: float | None) -> Iterator[PriceItem]:
    """The volume, and its snapshots as if it were full: the first holds what is used, each later one what changed."""
    gib, count = etcd_volume_gib(cluster), etcd_snapshots(cluster)
    yield PriceItem(f"etcd volume gp3 {gib} GiB", 1, _an_hour(gigabyte_month, gib))
    if count:
        yield PriceItem(f"etcd snapshots, {count} daily, at most {gib} GiB", 1, _an_hour(snapshot_month, gib))


def _an_hour(gigabyte_month: float | None, gib: int) -> float | None:
    return None if gigabyte_month is None else gigabyte_month * gib / HOURS_A_MONTH


def _creates(cluster: Cluster, stem: str) -> Iterator[tuple[str, str]]:
    if not is_given(cluster.settings):
        yield "vpc", f"{stem}-vpc ({vpc_cidr(cluster)})"
        yield "subnet", f"{stem} public, in two zones"
        yield "subnet", f"{stem} private, in two zones"
        yield "internet gateway", f"{stem}-igw"
        yield "nat gateway", f"{stem}-nat"
        yield "route table", f"{stem} public and private"
    yield "security group", f"{stem}-balancer"
    yield "security group", f"{stem}-control-plane"
    yield "security group", f"{stem}-node"
    yield "iam role", f"{stem}-node-role"
    yield "instance profile", f"{stem}-instance-profile"
    if cloud_controllers(cluster):
        yield "iam role", f"{stem}-ctrl-role"
        yield "instance profile", f"{stem}-ctrl-instance-profile"
    yield "network load balancer", f"{stem} API endpoint"
    first, *fallbacks = control_plane_types(cluster)
    types = f"{first}, else {' or '.join(fallbacks)}" if fallbacks else first
    yield "instance", f"{stem}-control-plane ({types}, in any of its zones)"
    yield "volume", f"{stem}-etcd ({etcd_volume_gib(cluster)} GiB)"
    if etcd_snapshots(cluster):
        yield "snapshot policy", f"{stem}-etcd-snapshots (daily, {etcd_snapshots(cluster)} at a time)"


def faults(cluster: Cluster, prices: PriceList, prefix: str) -> Iterator[Finding]:
    """See ``ports.ClusterDriver.validate``: the role's name, a minor that machines cannot install, types that are not
    offered, a control plane too small."""
    role = f"{prefix}-{cluster.client_id}-node-role"
    if len(role) > ROLE_NAME_LIMIT:
        yield Finding("/name", f"The role name {role} would have more than {ROLE_NAME_LIMIT} characters.")
    if cluster.kubernetes_version not in kubernetes_versions.TESTED:
        yield Finding("/kubernetes_version", f"must be {' or '.join(kubernetes_versions.TESTED)}")
    for pointer, name in (*named_control_plane_types(cluster.settings), *types_of_groups(cluster.settings)):
        if prices.offered(region(cluster), name) is False:
            yield Finding(pointer, f"{name} is not offered in {region(cluster)}.")
    yield from _size_faults(cluster, prices)


def _size_faults(cluster: Cluster, prices: PriceList) -> Iterator[Finding]:
    """Types that are too small for a control plane, where the person has written them. An unknown type may do."""
    for pointer, name in named_control_plane_types(cluster.settings):
        offer = prices.instance(region(cluster), name)
        if offer and (offer["vcpu"] < LEAST_VCPU or offer["memory_mib"] < LEAST_MEMORY_MIB):
            yield Finding(
                pointer,
                f"{name} has {offer['vcpu']} vCPU and {offer['memory_mib']} MiB; a control plane needs at least"
                f" {LEAST_VCPU} vCPU and {LEAST_MEMORY_MIB} MiB. Choose a larger type.",
            )
