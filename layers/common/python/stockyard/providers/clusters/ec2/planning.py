"""Needs and costs of a cluster, as its settings and the catalogue say. No call is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stockyard import kubernetes_versions
from stockyard.domain.clusters import overlay
from stockyard.domain.clusters.control_plane import LEAST_MEMORY_MIB, LEAST_VCPU
from stockyard.domain.records import Cluster
from stockyard.domain.values.notes import Note
from stockyard.domain.values.prices import HOURS_A_MONTH, MEMBER, PriceItem
from stockyard.ports import ClusterPlan, Finding, PriceList
from stockyard.providers.clouds.aws.catalog.offerings import price_remarks, tag_findings
from stockyard.providers.clusters.ec2.configuration import (
    cloud_controllers,
    control_plane_disk_gib,
    control_plane_types,
    etcd_snapshots,
    etcd_volume_gib,
    named_control_plane_types,
    region,
    types_of_groups,
    vpc_cidr,
)
from stockyard.providers.clusters.ec2.groups import bid_remarks
from stockyard.providers.clusters.ec2.members import etcd_backup
from stockyard.providers.clusters.ec2.network.layout import LETTERS, PRIVATE, PUBLIC, key, merged
from stockyard.providers.clusters.ec2.network.network_configuration import (
    BASTION_DISK_GIB,
    bastion_of,
    control_plane_size,
    has_nat_in_each_zone,
    is_given,
    named_subnets,
    nat_count,
    zone_count,
)

ROLE_NAME_LIMIT = 64
EGRESS_USD, EGRESS_GB = 0.09, 100
"""USD of a GB to the internet, of the first ten TB of a month: AWS's page of prices on demand, "Data Transfer OUT From
Amazon EC2 To Internet", for most regions. And the GB of a month that a plan assumes for a cluster with an overlay, as
nobody knows them before."""
MOST_ETCD_DATA_GIB = 2
"""What etcd takes at most."""

_BALANCER, _ADDRESS, _BASTION = "endpoint/load_balancer", "network/address", "bastion/instance"
"""Lines of the ledger, by phase and kind."""


def plan(cluster: Cluster, prices: PriceList, prefix: str) -> ClusterPlan:
    """See ``ports.ClusterDriver.plan``. ``prefix`` begins every name."""
    return ClusterPlan(creates(cluster, prefix), tuple(price_items(cluster, prices)), tuple(_remarks(cluster, prices)))


def network_zones(before: Cluster, after: Cluster) -> Sequence[str]:
    """The zones that are named in either, in the order of their letters: those that were there before come first."""
    return merged(*(list(cluster.settings.get("zones") or ()) for cluster in (before, after)))


def creates(cluster: Cluster, prefix: str, order: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
    """Kind and name of each thing. ``order``: see ``network_zones``; none: the cluster's own zones."""
    return tuple(_creates(cluster, f"{prefix}-{cluster.client_id}", order))


def price_items(cluster: Cluster, prices: PriceList) -> list[PriceItem]:
    """Everything of a cluster that is billed while it stands, without its workers."""
    region_name, machine = region(cluster), control_plane_types(cluster)[0]
    offer = prices.instance(region_name, machine)
    gigabyte_month = prices.rate(region_name, "gp3")
    members, disk = control_plane_size(cluster.settings), control_plane_disk_gib(cluster.settings)
    items = [
        _times(f"control plane instance {machine}", members, offer["usd_hour"] if offer else None, (MEMBER, 1)),
        _times(f"control plane disk gp3 {disk} GiB", members, _an_hour(gigabyte_month, disk), (MEMBER, 1)),
        PriceItem("network load balancer", 1, prices.rate(region_name, "network_load_balancer"), ((_BALANCER, 1),)),
        *_etcd_items(cluster, gigabyte_month, prices.rate(region_name, "ebs_snapshot")),
        *_backup_items(cluster, prices.rate(region_name, "object_storage")),
        *_bastion_items(cluster, prices),
        *_egress_items(cluster),
    ]
    gateways, addresses = nat_count(cluster.settings), _public_addresses(cluster)
    if gateways:
        items.append(
            _times("NAT gateway", gateways, prices.rate(region_name, "nat_gateway"), ("network/nat_gateway", 1))
        )
    if addresses:
        rate = prices.rate(region_name, "public_ipv4")
        items.append(_times("public IPv4 address", sum(count for _, count in addresses), rate, *_each(addresses)))
    return items


def _public_addresses(cluster: Cluster) -> list[tuple[str, int]]:
    """Public addresses of the load balancer in each zone, of the NAT gateways, of a public control plane, and of the
    bastion, each with the lines of the ledger that they come with. In a given VPC the load balancer may have fewer."""
    settings = cluster.settings
    subnets = named_subnets(settings)
    balancer = sum(1 for entry in subnets if entry.get("public")) if subnets else zone_count(settings)
    counts = [
        (_BALANCER, balancer),
        (_ADDRESS, nat_count(settings)),
        (MEMBER, 1 if settings.get("public_control_plane") else 0),
        (_BASTION, 1 if bastion_of(settings) else 0),
    ]
    return [(line, count) for line, count in counts if count]


def _each(addresses: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Number of addresses for which one line stands: each that belongs to a NAT gateway is a line of its own."""
    return [(line, 1 if line == _ADDRESS else count) for line, count in addresses]


def _bastion_items(cluster: Cluster, prices: PriceList) -> Iterator[PriceItem]:
    bastion, region_name = bastion_of(cluster.settings), region(cluster)
    if bastion is None:
        return
    offer = prices.instance(region_name, bastion["instance_type"])
    yield PriceItem(
        f"bastion instance {bastion['instance_type']}", 1, offer["usd_hour"] if offer else None, ((_BASTION, 1),)
    )
    rate = _an_hour(prices.rate(region_name, "gp3"), BASTION_DISK_GIB)
    yield PriceItem(f"bastion disk gp3 {BASTION_DISK_GIB} GiB", 1, rate, ((_BASTION, 1),))


def _remarks(cluster: Cluster, prices: PriceList) -> Iterator[Finding]:
    """Warnings that prices are not known; and what the other choice of NAT gateways would cost, where somebody has
    chosen or there are zones to choose for."""
    yield from price_remarks(region(cluster), prices)
    yield from bid_remarks(cluster, prices)
    settings = cluster.settings
    if settings.get(overlay.SETTING):
        text = (
            f"What nodes of other networks are sent leaves AWS, for about {EGRESS_USD} USD a GB. The price assumes"
            f" {EGRESS_GB} GB a month, {EGRESS_USD * EGRESS_GB:.2f} USD, whatever there will be; the load balancer"
            " takes its share of what comes through hubs besides."
        )
        yield Finding("/settings/overlay", Note(text), warning=True)
    if is_given(settings) or not settings.get("zones") or zone_count(settings) == 1:
        return
    region_name, count = region(cluster), zone_count(settings)
    gateway, address = prices.rate(region_name, "nat_gateway"), prices.rate(region_name, "public_ipv4")
    if gateway is None or address is None:
        return
    for_all, in_each = ((gateway + address) * number * HOURS_A_MONTH for number in (1, count))
    if has_nat_in_each_zone(settings):
        text = (
            f"A NAT gateway in each of {count} zones costs {in_each:.2f} USD a month. One for all would cost"
            f" {for_all:.2f}, and all zones would depend on the first; traffic between zones is billed besides."
        )
    else:
        text = (
            f"One NAT gateway for {count} zones costs {for_all:.2f} USD a month; all of them depend on the first, and"
            f" traffic between zones is billed besides. One in each would cost {in_each:.2f}."
        )
    yield Finding("/settings/nat_gateways", Note(text), warning=True)


def _times(name: str, count: int, rate: float | None, *made_as: tuple[str, int]) -> PriceItem:
    return PriceItem(name, count, None if rate is None else rate * count, made_as)


def _etcd_items(cluster: Cluster, gigabyte_month: float | None, snapshot_month: float | None) -> Iterator[PriceItem]:
    """The volume, and snapshots as if each disk with etcd's data were full: the first of a disk holds what is used,
    each later one what changed."""
    gib, count = etcd_volume_gib(cluster), etcd_snapshots(cluster)
    yield PriceItem(f"etcd volume gp3 {gib} GiB", 1, _an_hour(gigabyte_month, gib), (("control_plane/volume", 1),))
    if count:
        # Members after the first have etcd's data on their root disks.
        gib += control_plane_disk_gib(cluster.settings) * (control_plane_size(cluster.settings) - 1)
        yield PriceItem(
            f"etcd snapshots, {count} daily, at most {gib} GiB",
            1,
            _an_hour(snapshot_month, gib),
            (("snapshots/snapshot_policy", 1),),
        )


def _egress_items(cluster: Cluster) -> Iterator[PriceItem]:
    """Price of what leaves AWS for nodes of other networks, by an assumption that its name tells."""
    if cluster.settings.get(overlay.SETTING):
        name = f"egress of the overlay, {EGRESS_GB} GB a month assumed"
        yield PriceItem(name, 1, EGRESS_USD * EGRESS_GB / HOURS_A_MONTH, ((_BALANCER, 1),))


def _backup_items(cluster: Cluster, gigabyte_month: float | None) -> Iterator[PriceItem]:
    """Snapshots in S3 as if each were as large as etcd gets; most are a hundredth of that."""
    backup = etcd_backup.backup_of(cluster)
    if backup is not None:
        gib = MOST_ETCD_DATA_GIB * int(backup["keep"])
        name = f"etcd snapshots in S3, {backup['keep']} of them, at most {gib} GiB"
        yield PriceItem(name, 1, _an_hour(gigabyte_month, gib), ((MEMBER, 1),))


def _an_hour(gigabyte_month: float | None, gib: int) -> float | None:
    return None if gigabyte_month is None else gigabyte_month * gib / HOURS_A_MONTH


def _creates(cluster: Cluster, stem: str, order: Sequence[str]) -> Iterator[tuple[str, str]]:
    if not is_given(cluster.settings):
        yield from _own_network(cluster, stem, order)
    yield "security group", f"{stem}-balancer"
    yield "security group", f"{stem}-control-plane"
    yield "security group", f"{stem}-node"
    yield "iam role", f"{stem}-node-role"
    yield "instance profile", f"{stem}-instance-profile"
    if cloud_controllers(cluster):
        yield "iam role", f"{stem}-ctrl-role"
        yield "instance profile", f"{stem}-ctrl-instance-profile"
    backup = etcd_backup.backup_of(cluster)
    if backup is not None and not backup.get("bucket"):
        yield "bucket", f"{stem}-{etcd_backup.KEY} (S3)"
    yield "network load balancer", f"{stem} API endpoint"
    if cluster.settings.get(overlay.SETTING):
        ports = f"{overlay.PORT} to {overlay.PORT + overlay.HUBS - 1}"
        yield "target group", f"{stem} hubs of the overlay (UDP {ports})"
    bastion = bastion_of(cluster.settings)
    if bastion:
        yield "security group", f"{stem}-bastion"
        yield "instance", f"{stem}-bastion ({bastion['instance_type']})"
    first, *fallbacks = control_plane_types(cluster)
    types = f"{first}, else {' or '.join(fallbacks)}" if fallbacks else first
    yield "instance", f"{stem}-control-plane ({types}, in any of its zones)"
    for number in range(2, control_plane_size(cluster.settings) + 1):
        yield "node claim", f"member {number} of the control plane ({types})"
    yield "volume", f"{stem}-etcd ({etcd_volume_gib(cluster)} GiB)"
    if etcd_snapshots(cluster):
        yield "snapshot policy", f"{stem}-etcd-snapshots (daily, {etcd_snapshots(cluster)} at a time)"


def _own_network(cluster: Cluster, stem: str, order: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each subnet and gateway by its own name, so that a plan of growth has only what comes."""
    settings = cluster.settings
    zones = list(settings.get("zones") or ())
    indexes = [(list(order) or zones).index(zone) for zone in zones] or range(zone_count(settings))
    yield "vpc", f"{stem}-vpc ({vpc_cidr(cluster)})"
    for tier in (PUBLIC, PRIVATE):
        for number, index in enumerate(indexes):
            yield "subnet", f"{stem}-{key(tier, index)}" + (f" ({zones[number]})" if zones else "")
    yield "internet gateway", f"{stem}-igw"
    for index in indexes if has_nat_in_each_zone(settings) else (0,):
        yield "nat gateway", f"{stem}-nat" + (f"-{LETTERS[index]}" if index else "")
    yield "route table", f"{stem} public and private"
    yield "vpc endpoint", f"{stem}-s3"


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
    yield from tag_findings(cluster.tags)
    if bastion_of(cluster.settings) and not cluster.settings.get("ssh_cidrs"):
        text = "Nobody reaches the bastion: ssh_cidrs names no range that may."
        yield Finding("/settings/ssh_cidrs", text, warning=True)


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
